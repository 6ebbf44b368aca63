// Package tables repeats what others have published of schedulers, on the traces
// that they published, and compares cell by cell.
//
//	A  six policies of placement on openb (FGD, ATC 2023), and Coxswain's own beside them
//	B  EASY backfill on KTH-SP2 (SC 2015), by the production core
//	C  first come, first served on Lublin's workload (RLScheduler, SC 2020), by the production core
//	D  preemptive shortest remaining time on Philly (Muri, SIGCOMM 2022)
//
// It has tests only. The traces are not part of the repository; sim/trace/tracetest
// says where they are looked for.
package tables
