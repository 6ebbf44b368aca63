// Package preflight looks at a cluster before a pool of the engine kube is added there, and says what the
// pool needs: the rights of the pool's account and of those in whose names jobs are made, with the roles
// that grant them, and the admission policy that keeps others off reserved nodes.
//
// Check makes the findings: version, rights, namespaces and their quotas, gangs, nodes, devices, volumes,
// images. It reads, asks who it is and what it may do, and makes nothing that stays. Rights, Manifest,
// Policy and PolicyManifest are functions of the pool's settings and of what begins its pods together;
// they ask no cluster. The rights are the least that the engine needs: a test runs the engine with them
// alone.
package preflight
