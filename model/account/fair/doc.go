// Package fair keeps what accounts, users and QOS have used, lets that decay, and
// ranks users by it: Slurm's usage of priority/multifactor and its Fair Tree.
//
// A Book holds the usage. Time is told to it in whole seconds. Advance lets what was
// used decay, Charge adds what a job used to its association, to every account above
// it and to QOS. Between two calls of Advance nothing decays.
//
// Rank orders the users of a tree so that everybody of an account that is served less
// than its share comes before everybody of its siblings (Slurm's fair_tree.html).
//
// The same calls give the same bits on every machine: powers are repeated products,
// products are rounded before they are added, and Rank compares integers. The package
// is pure. It knows no clock, no job and no node.
package fair
