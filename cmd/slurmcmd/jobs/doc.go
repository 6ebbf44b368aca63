// Package jobs is a list of jobs as Slurm's commands show it: which columns of the
// server's text each field needs, and how a field is written.
//
// Nothing is decoded that is not printed: a Rows keeps the text of the server, and a
// field reads the few cells that it is made of.
package jobs
