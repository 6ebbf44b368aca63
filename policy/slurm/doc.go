// Package slurm makes the rules of a site of what a Slurm cluster has: slurm.conf
// with what it includes, and what sacctmgr dump prints (and sacctmgr show qos -P,
// where the dump has no QOS).
//
// Every setting that is read is in the report: kept, approximated and how, refused
// and what would do instead, or no rule of a site at all. None is dropped silently:
// the settings of a file are as many as the findings about it. Where they contradict
// each other, the report says so, and cox apply refuses the rules until that is mended.
//
// gres.conf, topology.conf and topology.yaml say with slurm.conf what machines there are
// (Cluster); other files of Slurm's are named as not used, line by line. Directives are those
// of 20.11 to 26.05 (directives.go); one that is none of these is refused with the nearest name.
//
// It does no I/O: the caller hands it texts, and those that are included. It does not read
// job_submit scripts, which are programs, renders no templates, and shows no password.
package slurm
