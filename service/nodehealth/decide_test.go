package nodehealth

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
)

// result reads "check verdict", "check/2 verdict" for a device and "check/2=UUID verdict".
func result(text string) fleet.CheckResult {
	name, verdict, _ := strings.Cut(text, " ")
	check, device, ok := strings.Cut(name, "/")
	r := fleet.CheckResult{Check: check, Verdict: fleet.Verdict(verdict), Text: "seen"}
	if ok {
		number, uuid, _ := strings.Cut(device, "=")
		i := int(number[0] - '0')
		r.Device, r.UUID = &i, uuid
	}
	return r
}

// fencesText writes fences as result reads them.
func fencesText(fences []fleet.HealthFence) string {
	var out []string
	for _, f := range fences {
		name := f.Check
		if f.Device != nil {
			name += "/" + string(rune('0'+*f.Device))
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// Each step is what one look sees, then "→", then the fences that follow.
//
// Seen to fail with: an unknown verdict that counts as a pass, a pass that does not begin a new streak
// after a failure, and a device's fence that goes with the pass of another one.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules Rules
		steps []string
	}{
		{"fails once, passes twice", Rules{1, 2}, []string{"disk pass →", "disk fail → disk", "disk pass → disk", "disk pass →", "disk pass →"}},
		{"flaps", Rules{1, 2}, []string{"disk fail → disk", "disk pass → disk", "disk fail → disk", "disk pass → disk", "disk pass →"}},
		{"needs two failures", Rules{2, 1}, []string{"disk fail →", "disk pass →", "disk fail →", "disk fail → disk", "disk pass →"}},
		{"cannot be looked at", Rules{1, 1}, []string{"disk unknown →", "disk fail → disk", "disk unknown → disk", "disk pass →"}},
		{"warns", Rules{1, 1}, []string{"disk warn →", "disk fail → disk", "disk warn →"}},
		{"one device of several", Rules{1, 2}, []string{"gpu/0 pass, gpu/1 fail, gpu/2 pass → gpu/1", "gpu/0 fail, gpu/1 fail, gpu/2 pass → gpu/1 gpu/0", "gpu/0 pass, gpu/1 fail, gpu/2 pass → gpu/1 gpu/0", "gpu/0 pass, gpu/1 fail, gpu/2 pass → gpu/1", "gpu/0 pass, gpu/1 pass, gpu/2 pass → gpu/1", "gpu/1 pass →"}},
		{"a script names devices", Rules{1, 1}, []string{"own/1 fail → own/1", "own/2 fail → own/2", "own pass →"}},
		{"a script that cannot name devices any more", Rules{1, 1}, []string{"own/1 fail → own/1", "own fail → own/1 own", "own unknown → own/1 own", "own/1 fail → own/1"}},
		{"another device in its place", Rules{1, 2}, []string{"gpu/1=A fail → gpu/1", "gpu/1=B pass → gpu/1", "gpu/1=B pass →"}},
		{"a check that is made no more", Rules{1, 2}, []string{"own fail, disk pass → own", "disk pass → own", "disk pass →"}},
		{"on request", Rules{1, 5}, []string{"disk fail → disk", "! disk pass →"}},
		{"on request, and it fails", Rules{1, 5}, []string{"disk fail → disk", "! disk fail → disk"}},
		{"two checks", Rules{1, 1}, []string{"disk fail, mem fail → disk mem", "disk pass, mem fail → mem", "disk pass, mem pass →"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var had []fleet.HealthFence
			s := streaks{}
			for i, step := range c.steps {
				seen, want, _ := strings.Cut(step, "→")
				seen, released := strings.CutPrefix(strings.TrimSpace(seen), "! ")
				var results []fleet.CheckResult
				for text := range strings.SplitSeq(seen, ", ") {
					results = append(results, result(text))
				}
				before := fencesText(had)
				var text string
				had, text = c.rules.Decide(s, had, results, released, time.Unix(int64(i), 0))
				if got := fencesText(had); got != strings.TrimSpace(want) {
					t.Fatalf("step %d, %s: %q", i+1, step, got)
				}
				if (text != "") != (fencesText(had) != before) {
					t.Errorf("step %d, %s: it says %q", i+1, step, text)
				}
			}
		})
	}
}

// What another system found is shown: that system has acted upon it.
func TestDecideLeavesOthersAlone(t *testing.T) {
	r := result("HealthCheckProgram fail")
	r.From = "slurm"
	if fences, text := (Rules{1, 1}).Decide(streaks{}, nil, []fleet.CheckResult{r}, false, time.Time{}); len(fences) != 0 || text != "" {
		t.Errorf("%+v %q", fences, text)
	}
}
