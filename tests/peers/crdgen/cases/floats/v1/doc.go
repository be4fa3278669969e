// Package v1 holds the cases of the group floats.
//
// +groupName=floats.example.com
// +versionName=v1
package v1
