// Package scancel is Slurm's scancel: it ends or signals jobs by number, or all that
// match a filter, in one step of the server.
//
// As with Slurm, a job that is not known or has ended already is no error unless -v
// asks to hear of it.
package scancel
