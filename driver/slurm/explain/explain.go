// Package explain puts Slurm's words for why a job waits in plain language.
//
// Guarantees: every word that Coxswain itself prints in squeue is explained. Of a word that it
// does not know it says nothing. It knows neither jobs nor the cluster: numbers of limits, and
// who holds what, are not in its answers.
package explain

import (
	"strings"
	"time"
)

// explanation is what a word of Slurm's for why a job waits means, and what would help.
type explanation struct{ what, help string }

// explained are Slurm's words, as squeue's %r has them.
var explained = map[string]explanation{
	"Resources":                   {"it is the next one, and what it asks for is not free", "wait, or ask for less"},
	"Priority":                    {"jobs of higher priority wait before it", "wait; sprio shows what its priority is made of"},
	"Dependency":                  {"a job that it depends on has not come so far", "wait for that job"},
	"DependencyNeverSatisfied":    {"a job that it depends on ended in another way", "cancel it: it will never start"},
	"BeginTime":                   {"its earliest begin has not come, or Slurm put it back and holds it off for a while", "wait"},
	"JobHeldAdmin":                {"an administrator of the cluster holds it", "ask them: nobody else can release it"},
	"JobHeldUser":                 {"it is held by its owner, in Slurm", "scontrol release JOB on the cluster"},
	"JobHoldMaxRequeue":           {"it was put back too often (MaxBatchRequeue)", "look why it does not begin, then scontrol release JOB"},
	"JobLaunchFailure":            {"Slurm could not begin it on its nodes", "look into slurmd's log there"},
	"launch failed requeued held": {"Slurm could not begin it on its nodes, and holds it", "look into slurmd's log there, then scontrol release JOB"},
	"Licenses":                    {"its licences are in use", "wait, or ask for fewer; cox pool show POOL lists them"},
	"Reservation":                 {"its reservation has not begun, or is full", "wait for it; cox pool show POOL lists them"},
	"ReservationDeleted":          {"its reservation was removed", "submit it again without one"},
	"ReqNodeNotAvail":             {"a node that it needs is drained, down or reserved", "wait for the node, or name no nodes; a reservation for maintenance that begins before the job's time limit ends does it too: a shorter --time may fit before it"},
	"NodeDown":                    {"a node that it needs is down", "wait for the node, or name no nodes"},
	"BadConstraints":              {"no nodes have the features and devices that it asks for", "ask for others: cox nodes --pool POOL"},
	"Constraints":                 {"no free node has the features that it asks for", "wait, or ask for others"},
	"PartitionDown":               {"its partition is down", "another --partition, or wait for an administrator"},
	"PartitionInactive":           {"its partition takes no jobs", "another --partition, or wait for an administrator"},
	"PartitionNodeLimit":          {"it asks for more nodes than its partition gives a job, or has in service", "fewer nodes, or another --partition"},
	"PartitionTimeLimit":          {"its time limit is longer than its partition allows", "a shorter --time, or another --partition"},
	"PartitionConfig":             {"its partition does not take what it asks for, or its account or QOS", "another --partition: cox pool show POOL"},
	"AccountNotAllowed":           {"its account may not use the partition", "another --account or --partition"},
	"QOSNotAllowed":               {"its QOS is not allowed in the partition, or not to its account", "another --qos or --partition"},
	"InvalidAccount":              {"its account is not known, or not for its user", "another --account"},
	"InvalidQOS":                  {"its QOS is not known, or not for its user", "another --qos"},
	"Association":                 {"its association with an account is gone", "ask an administrator of the cluster for one (sacctmgr)"},
	"TimeLimit":                   {"it reached its time limit", "a longer --time"},
	"InactiveLimit":               {"it was idle for too long", "look at the job"},
	"DeadLine":                    {"it cannot end before its deadline", "a later --deadline or a shorter --time"},
	"JobArrayTaskLimit":           {"as many tasks of its array run as it allows (--array=…%N)", "wait, or raise the number behind %"},
	"Cleaning":                    {"what ran before is being cleaned up", "wait"},
	"Prolog":                      {"the nodes are being prepared", "wait"},
	"FrontEndDown":                {"no front end takes jobs", "wait for an administrator"},
	"SystemFailure":               {"something of Slurm or its nodes failed", "look into slurmctld's log"},
	"RaisedSignal":                {"a signal ended it", "look at its output"},
	"NonZeroExitCode":             {"it ended with an exit code other than 0", "look at its output"},
	"BurstBufferOperation":        {"its burst buffer failed", "look at the job on the cluster: scontrol show job"},
	"BurstBufferResources":        {"there is no room in the burst buffer", "wait"},
	"BurstBufferStageIn":          {"its burst buffer is being filled", "wait"},
	"ScheduleDefer":               {"Slurm looks at it a little later", "wait"},
	"SchedDefer":                  {"Slurm looks at it a little later", "wait"},
	"None":                        {"Slurm has not looked at it yet", "wait"},
	"MaxMemPerLimit":              {"it asks for more memory on a CPU or node than is allowed (MaxMemPerCPU, MaxMemPerNode)", "less memory, or more CPUs for it"},
	"OutOfMemory":                 {"it used more memory than it had", "more memory"},
	"FedJobLock":                  {"the clusters of the federation decide where it runs", "wait"},
	"QOSUsageThreshold":           {"its account has used more than its QOS allows", "wait, or another --qos"},
	"JobArrayFailed":              {"a task of its array failed", "look at that task"},
}

// scopes are whose limits the beginnings of words speak of.
var scopes = []struct{ prefix, whose string }{{"QOS", "its QOS's"}, {"Assoc", "its account's or user's"}}

// measures are what limits are of, as words of limits end.
var measures = []struct{ suffix, what string }{
	{"WallDurationPerJob", "time of a job"},
	{"JobsPerUser", "jobs of a user at a time"},
	{"JobsPerAccount", "jobs of an account at a time"},
	{"SubmitJobs", "jobs of all that wait or run"},
	{"SubmitJobPerUser", "jobs of a user that wait or run"},
	{"SubmitJobPerAccount", "jobs of an account that wait or run"},
	{"SubmitJob", "jobs that wait or run"},
	{"JobsPerUser", "jobs of a user"},
	{"CPUMinutes", "CPU minutes"},
	{"CpuMinutes", "CPU minutes"},
	{"CPURunMinutes", "CPU minutes of what runs"},
	{"CpuRunMinutes", "CPU minutes of what runs"},
	{"Cpu", "CPUs"},
	{"CPU", "CPUs"},
	{"Memory", "memory"},
	{"Mem", "memory"},
	{"Node", "nodes"},
	{"GRES", "GPUs and other devices"},
	{"Gres", "GPUs and other devices"},
	{"License", "licences"},
	{"Billing", "billing units"},
	{"Jobs", "jobs at a time"},
	{"Job", "jobs at a time"},
	{"Wall", "time in all"},
	{"WallDuration", "time"},
	{"BB", "burst buffer"},
	{"Energy", "energy"},
	{"RunMinutes", "minutes of what runs"},
	{"Minutes", "minutes"},
	{"Usage", "usage"},
	{"Threshold", "usage"},
	{"Unknown", "a resource"},
}

// expects stands between Slurm's word and a time.
const expects = ", and Slurm expects to start it at "

// WithStart is a word of Slurm's, or none, together with when Slurm expects to start the job.
func WithStart(word string, at time.Time) string {
	text := expects + at.UTC().Format(time.RFC3339)
	if word == "" {
		return strings.TrimPrefix(text, ", and ")
	}
	return word + text
}

// Reason says what a word of Slurm's for why a job waits means, in plain language, and what
// would help. An expected start behind the word (WithStart) does not matter. Of a word that it
// does not know both are empty.
func Reason(word string) (what, help string) {
	word, _, _ = strings.Cut(word, expects)
	word = strings.Trim(word, "() ")
	base, more, _ := strings.Cut(word, ",") // "ReqNodeNotAvail, UnavailableNodes:n3"
	x, ok := explained[base]
	if !ok {
		x, ok = explainLimit(base)
	}
	if !ok {
		return "", ""
	}
	if _, nodes, ok := strings.Cut(more, "UnavailableNodes:"); ok && nodes != "" {
		x.what += ": " + nodes
	}
	return x.what, x.help
}

// explainLimit understands words of limits: AssocGrpGRES, QOSMaxJobsPerUserLimit.
func explainLimit(word string) (explanation, bool) {
	for _, s := range scopes {
		rest, ok := strings.CutPrefix(word, s.prefix)
		if !ok {
			continue
		}
		rest = strings.TrimSuffix(rest, "Limit")
		group := strings.HasPrefix(rest, "Grp")
		least := strings.HasPrefix(rest, "Min")
		rest = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(rest, "Grp"), "Max"), "Min")
		per := ""
		for _, p := range []struct{ suffix, text string }{{"PerUser", " of a user"}, {"PerAccount", " of an account"}, {"PerJob", " of a job"}, {"PerNode", " on a node"}, {"PU", " of a user"}, {"PA", " of an account"}} {
			if !limitedResource(rest) {
				if r, ok := strings.CutSuffix(rest, p.suffix); ok {
					rest, per = r, p.text
				}
			}
		}
		what := resourcePhrase(rest) + per
		switch {
		case least:
			return explanation{"it asks for less than " + s.whose + " least " + what, "ask for more, or another --qos"}, true
		case group:
			return explanation{s.whose + " jobs together have reached the limit of " + what, "wait until one of them ends, ask for less, or another --account or --qos; cox pool show POOL -o json has the limits"}, true
		case strings.HasSuffix(word, "PerJobLimit") || strings.HasSuffix(word, "PerJob") || per == " on a node":
			return explanation{"it asks for more than " + s.whose + " limit of " + what, "ask for less, or another --qos; it will not start as it is"}, true
		}
		return explanation{s.whose + " limit of " + what + " is reached", "wait until a job ends, or another --account or --qos; cox pool show POOL -o json has the limits"}, true
	}
	return explanation{}, false
}

func limitedResource(rest string) bool {
	for _, m := range measures {
		if m.suffix == rest {
			return true
		}
	}
	return false
}

func resourcePhrase(rest string) string {
	for _, m := range measures {
		if m.suffix == rest {
			return m.what
		}
	}
	return "a resource"
}
