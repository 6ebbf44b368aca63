// Package nodenet gives each virtual node of this machine a network namespace and an address.
//
// The model. One state directory has one network: a bridge on the machine, a namespace for each
// node, a pair of virtual interfaces between them, and a subnet of 198.18.0.0/15, which no site
// uses (RFC 2544). The machine has the first address of the subnet. A record in /run/coxswain-net
// says what was made and what was changed of the machine; a lock in that folder serializes all
// users of this package on the machine.
//
//	machine   coxN  198.18.X.1/24 ──┬── coxN.1 ══ eth0 198.18.X.2   /run/netns/coxN-v1
//	          NAT by iptables       └── coxN.2 ══ eth0 198.18.X.3   /run/netns/coxN-v2
//
// Guarantees. Opening is idempotent: it adopts what an earlier process of the same state
// directory made, and mends what is missing; a node keeps its address as long as the record
// lives. What this package changes of the machine (forwarding of an interface, rules of iptables,
// a block in /etc/hosts) is in the record and in Network.Notes, and Close and Sweep put it back.
// A namespace in which a process lives is never removed.
//
// It does not enter namespaces: supervisors do (package supervise). IPv6 is not routed.
// It needs root, and Linux with bridges and network namespaces.
package nodenet
