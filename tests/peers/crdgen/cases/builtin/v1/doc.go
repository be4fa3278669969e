// Package v1 holds the cases of the group builtin.
//
// +groupName=builtin.example.com
// +versionName=v1
package v1
