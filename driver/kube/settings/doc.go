// Package settings has what a pool of the engine kube is told about its cluster: its namespaces and
// accounts, the volumes behind the paths in scripts, which pods it makes, and which jobs it takes.
//
// Terms are the settings of one pool in their final form; server/daemon reads them from the
// configuration and checks each name. Terms are not written to after that, and are safe for concurrent
// use. The methods of Terms are functions of the settings and of a job: they ask no cluster. A job is
// refused here by its account, its kubernetes block, and its paths (Terms.CheckJob); the engine refuses
// it by what the cluster has.
package settings
