// Package account describes for whom work is done and what that allows: a tree of
// accounts with the users in them, QOS, the rules of partitions, quotas, licences,
// and how all that orders jobs. One tree serves the limits that Slurm knows
// (associations) and the quotas that Kueue knows (cohorts and queues).
//
// Policy is data, as a site wrote it; what the core counts while it decides stands
// in sched. The package is pure. It knows no clock, no job and no node.
package account
