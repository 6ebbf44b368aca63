// Package preflight says what a pool of the engine kube needs in its cluster before it is added: the
// rights of the pool's account and of those in whose names jobs are made, with the roles that grant them,
// and the admission policy that keeps others off reserved nodes.
//
// Rights, Manifest, Policy and PolicyManifest are functions of the pool's settings and of what begins its
// pods together; they ask no cluster. The rights are the least that the engine needs: a test runs the
// engine with them alone.
package preflight
