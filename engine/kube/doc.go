// Package kube is the engine of a Kubernetes cluster (docs/design/0011): pods of our own,
// together or not at all, at most one live attempt, freed on proof. There is no operator, no
// CRD of ours and no agent on nodes.
//
// What a pool's settings say is in Terms. Nodes, what others hold of them, and what is looked
// at before a pool is added are read by pure functions from what the API server tells.
package kube
