// Package v1 holds the cases of the group sorted.
//
// +groupName=sorted.example.com
// +versionName=v1
package v1
