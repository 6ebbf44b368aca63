// Package pools has the commands for pools: pool (list, show, add, check, remove) and
// verify, which runs a small gang in a pool and checks how it ran.
//
// The server opens a pool's engine and judges it. Only the manifests that an
// administrator of Kubernetes applies (--print-rbac, --print-policy) are made here,
// and they need Linux.
package pools
