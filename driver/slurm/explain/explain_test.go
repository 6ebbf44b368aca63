package explain_test

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/explain"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// Words that people meet say what holds the job, and what would help.
//
// Seen to fail with: "PerUser" not taken off a word of a limit.
func TestExplain(t *testing.T) {
	for word, want := range map[string]string{
		"AssocGrpGRES":                              "account's or user's jobs together have reached the limit of GPUs",
		"AssocGrpCpuLimit":                          "together have reached the limit of CPUs",
		"AssocMaxJobsLimit":                         "account's or user's limit of jobs at a time is reached",
		"QOSMaxJobsPerUserLimit":                    "its QOS's limit of jobs of a user at a time is reached",
		"QOSMaxCpuPerUserLimit":                     "its QOS's limit of CPUs of a user is reached",
		"QOSMaxGRESPerUser":                         "its QOS's limit of GPUs and other devices of a user is reached",
		"QOSMaxNodePerJobLimit":                     "it asks for more than its QOS's limit of nodes of a job",
		"QOSMinGRES":                                "less than its QOS's least GPUs",
		"QOSMaxWallDurationPerJobLimit":             "it asks for more than its QOS's limit of time of a job",
		"AssocMaxWallDurationPerJobLimit":           "limit of time of a job",
		"PartitionTimeLimit":                        "longer than its partition allows",
		"JobHeldAdmin":                              "an administrator of the cluster holds it",
		"(Licenses)":                                "licences are in use",
		"ReqNodeNotAvail, UnavailableNodes:n[3-4]":  "drained, down or reserved: n[3-4]",
		"ReqNodeNotAvail, Reserved for maintenance": "drained, down or reserved",
	} {
		what, help := explain.Reason(word)
		if !strings.Contains(what, want) || help == "" {
			t.Errorf("%s: %q, %q", word, what, help)
		}
	}
	for _, word := range []string{"", "Nonsense"} {
		if what, help := explain.Reason(word); what != "" || help != "" {
			t.Errorf("%q: %q, %q", word, what, help)
		}
	}
}

// Every word that Coxswain itself prints in squeue is explained.
func TestExplainOurWords(t *testing.T) {
	for _, c := range reason.Codes() {
		if what, _ := explain.Reason(c.Slurm()); what == "" {
			t.Errorf("%s: no explanation of %s", c, c.Slurm())
		}
	}
}
