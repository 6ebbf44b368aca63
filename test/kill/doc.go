// Package killtest runs the real binaries and does to them what happens to machines:
// kill -9 of the server, of supervisors, of both at once, SIGSTOP, a full disk, a clock
// that is moved. It judges from outside: jobs keep evidence of their own (package
// evidence), and the server's word is compared with that.
//
// A round submits some twenty pieces of work of a dozen kinds while one or two
// outrages happen at a random moment, waits until all of it has ended, and then asks
// of every job whose submission was answered:
//
//   - it ran exactly once to its end; an attempt that was lost is one whose supervisor
//     was killed or stopped here, and the job ran again unless it must not (--no-requeue);
//   - of the others, that they ran at most once;
//   - no two of its attempts lived at the same time, and no two processes had the same
//     device (locks that the kernel holds for the processes, not the server);
//   - every line that it printed is in its output file, in order and once;
//   - a device that a process has is one that the server says is held, by that job;
//     after the end all are free;
//   - no process that carries the round's mark is left.
//
// At the end the server is stopped, its supervisors have to go, and the store has to
// verify.
//
// The seed is fixed; COX_KILL_SEED chooses another one and COX_LONG=1 runs 500 rounds
// with stops of a minute. What a round does is chosen by the seed, when exactly it hits
// is not: the machine's scheduler has a part in it. A loss of power is not tried.
//
// TestSlurmOutlivesTheServer and TestKubeStorm do the like beside real Slurm and real Kubernetes, the
// second also to the cluster itself.
//
// What was tried to see it fail: without the search for what a dead supervisor left
// (driver/local/bury.go) a job's next attempt meets the one before; with launches that
// have no room taken for failed ones (control/report.go) TestDiskFullAtLaunch fails.
package killtest
