package command

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestWithoutAConfiguration: what to do is said where Slurm's commands find no slurm.conf. The
// words are as it says it without a configuration.
//
// Seen to fail with: these words not told apart.
func TestWithoutAConfiguration(t *testing.T) {
	err := refusalError("scontrol", &Result{Code: 1, Stderr: []byte("scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\nscontrol: error: fetch_config: DNS SRV lookup failed\nscontrol: error: _establish_config_source: failed to fetch config\nscontrol: fatal: Could not establish a configuration source\n")})
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Remedy(err), "--set conf=") || !strings.Contains(err.Error(), "configuration source") {
		t.Errorf("%v: %s", err, fault.Remedy(err))
	}
}
