// Package priority is Slurm's priority/multifactor (its page priority_multifactor.html): the factors
// of a job, what they count for, and the number that orders the queue; and what a job
// is billed for a second.
//
//	P = association + fair share + size + partition + QOS + Σ TRES − nice + age
//
// each factor between 0 and 1 times its weight, summed in this order, cut to a whole
// number between 1 and 2³²−1. Products are rounded before they are added, so the same
// factors give the same number on every machine.
//
// All but age and nice is alike for jobs that are alike (Base), so of many such jobs
// only the age has to be looked at, and the longer one waits the higher it stands.
//
// The package is pure. It knows no clock, no job and no node: it is told numbers.
package priority
