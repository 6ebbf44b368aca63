package intake

import (
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestSpareQOS: a spare_qos that there is not, or that the owner may not use, is refused when the service
// is submitted, at its line.
//
// Seen to fail with: checkSpare that returns nil.
func TestSpareQOS(t *testing.T) {
	site := &account.Policy{
		Accounts: []account.Account{{Name: "nlp", QOS: []string{"normal", "low"}, Users: []account.User{{Name: "anna"}}}},
		QOS:      []account.QOS{{Name: "normal"}, {Name: "low"}, {Name: "high"}},
	}
	rules := (&admission.Rules{}).Under(site)
	for qos, want := range map[string]struct {
		text   string
		kind   fault.Kind
		remedy string
	}{
		"low":  {},
		"lwo":  {"chat.yaml:4:12: spare_qos: lwo: there is no such QOS", fault.Invalid, "QOS here: normal, low, high"},
		"high": {"chat.yaml:4:12: spare_qos: high: anna may not use it in account nlp", fault.Permission, "normal, low"},
	} {
		r, err := Read(Text{Form: api.FormNative, Name: "chat.yaml", Data: []byte("kind: service\nports: [http]\ncommand: serve\nspare_qos: " + qos + "\nreplicas: {min: 1, max: 3}\nscale: {metric: in_flight, target: 8}\nname: chat\n")}, Options{Dir: "/", Owner: job.Owner{User: "anna", UID: 2001}})
		if err != nil {
			t.Fatal(err)
		}
		r.Spec.Account = "nlp"
		err = (&Site{}).checkSpare(t.Context(), r, rules)
		if want.text == "" {
			if err != nil {
				t.Errorf("%s: %v", qos, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want.text) || fault.KindOf(err) != want.kind || !strings.Contains(fault.Remedy(err)+err.Error(), want.remedy) {
			t.Errorf("%s: %v; %s", qos, err, fault.Remedy(err))
		}
	}
	r, err := Read(Text{Form: api.FormNative, Name: "chat.yaml", Data: []byte("kind: service\nports: [http]\ncommand: serve\nspare_qos: low\nreplicas: {min: 1, max: 3}\nscale: {metric: in_flight, target: 8}\nname: chat\n")}, Options{Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Site{}).checkSpare(t.Context(), r, &admission.Rules{}); err != nil || len(r.Warnings) != 1 || r.Warnings[0].Option != "spare_qos: low" {
		t.Errorf("a site without QOS: %v, %v", err, r.Warnings)
	}
}
