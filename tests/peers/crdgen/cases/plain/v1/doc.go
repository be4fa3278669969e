// Package v1 holds the cases of the group plain.
//
// +groupName=plain.example.com
// +versionName=v1
package v1
