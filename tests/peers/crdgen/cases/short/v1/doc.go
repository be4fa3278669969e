// Package v1 holds the cases of the group short.
//
// +groupName=short.example.com
// +versionName=v1
package v1
