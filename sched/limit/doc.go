// Package limit says which limits of a site hold for a job and counts against them:
// limits of associations (users and accounts), of QOS and of partitions, and
// licences, in Slurm's precedence (its page resource_limits.html; docs/reference/limits.md).
//
// Rules are resolved once for jobs that are alike to the policy (Key): a flat list of
// checks, each a counter, a bound and the words for the user. What a job would take
// (Use) is turned into one amount for each check (Needs), once for jobs that are
// alike in shape. A check is then an addition and a comparison.
//
// Which limit counts. Of a limit of one job, and of a limit of a QOS, the first
// definition wins in the order partition's QOS, job's QOS (the flag over_part_qos
// swaps them), user, account, the accounts above it. Each limit, and each resource in
// it, is resolved alone. Group limits of accounts hold at every level, unless a QOS
// defines the same one. A partition's largest and smallest number of nodes, and its
// longest time, hold beside all others unless the QOS says not (partition_max_nodes,
// partition_min_nodes, partition_time_limit).
//
// What is counted: claims as they are held, in the units of account.TRES. A node that
// is held whole counts whole. Devices count by their type too, whether or not the job
// named it: Slurm does not enforce a limit on gres/gpu:TYPE for those that named none.
// Minutes are counted in seconds, of memory and disk in MiB, and in full when a job
// starts; what it has not used yet becomes less as it runs. A job without a time limit
// needs more minutes than any limit has, but for one that serves: its minutes count when
// they are used.
//
// Slow answers the same questions by going through the policy and all jobs each time;
// tests compare.
//
// The package is pure. It does not know placement, order or time beyond seconds that
// it is told. Of limits on ageing (GrpJobsAccrue and its like) it resolves and counts;
// whose turn it is to grow older is not its own.
package limit
