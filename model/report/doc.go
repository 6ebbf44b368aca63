// Package report makes the reports of a site: what was used, how long work waited, who got what
// share, what was wasted, and what it cost. It is the only place where these numbers are computed;
// cox, the API and the pages show what it says.
//
// A Builder takes one Record a job, in any order, and keeps sums for each group of jobs, so its
// memory grows with the groups (at most MostGroups) and not with the jobs. Its result depends on
// nothing but what it was given.
//
// The numbers are those of sacct: times are whole seconds; an attempt held its resources from its
// start to its end without the time that it was suspended; attempts before the last one count too,
// as with sacct --duplicates, with what the job held last. Of an attempt that was partly outside
// the window, the part inside counts. Quantities that nobody measured are left out, and are not
// zero.
//
// It does not decide who may see which job.
package report
