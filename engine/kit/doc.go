// Package kit holds the parts that the drivers of clusters (driver/slurm, driver/kube) have in common.
//
// Journal is the file in which a driver keeps its attempts. The driver defines its entries, what
// those of one attempt add up to, and which of them still count (Format). The journal owns the
// file, its lock and its rewriting, the epoch, the name under which the cluster knows the driver,
// and the fence: an attempt that was forgotten, or stopped before it was known, never begins.
//
// Reports answers the calls of engine.Engine that need only the last reports: Inspect, List, Watch.
// LaunchDigest tells launches apart, for driver/local too.
//
// Guarantees: an entry whose Append failed does not count, in memory or after a restart. A journal
// in doubt (appendlog) is rewritten before the next entry. A journal is safe for concurrent use;
// the functions of a Format are called with its lock held, in the order of the file.
//
// It knows nothing of clusters, and starts no goroutine.
package kit
