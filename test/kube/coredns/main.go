// Package main is CoreDNS with the plugins that a cluster's own names need, for tests
// only: kubernetes, errors, ready. It is of the module of test/kube, whose packages it
// shares.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
