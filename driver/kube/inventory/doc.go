// Package inventory knows the nodes of a pool in a Kubernetes cluster: what they have, where they lie,
// what pods hold of them, and which volumes they can reach.
//
// The model. Refresh lists the nodes, the pods on them, the devices of DRA and the volumes of the
// pool's paths, and turns the nodes that the settings select into Machines: a fleet.Node for the core,
// and what a pod has to ask for to get a part of it. All other methods answer from the last Refresh.
//
// Guarantees. A Refresh that fails changes nothing but what is known of kubelets. Facts that the
// account may not read count as absent, except what others hold where Coxswain places pods itself:
// there the Refresh fails. Slices and Machines that methods return are never written to again.
//
// It does not watch: its owner calls Refresh as often as it wants news. It places nothing and creates
// nothing in the cluster.
//
// Files: inventory.go (the state, and Refresh), nodes.go, nodestate.go, nodetopology.go (what a Node
// object says), usage.go (what pods hold), gpu.go and dradevices.go (devices), volumetopology.go and
// volumeconflicts.go (volumes that only some nodes reach, or one at a time), reserved.go (nodes kept
// for the pool), report.go (the inventory that users see).
package inventory
