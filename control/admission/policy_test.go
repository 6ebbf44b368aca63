package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var site = &account.Policy{
	Accounts: []account.Account{
		{Name: "lab", QOS: []string{"normal", "low"}, Default: "normal"},
		{Name: "nlp", Parent: "lab", Users: []account.User{{Name: "anna"}, {Name: "ben", QOS: []string{"low"}}}},
		{Name: "vision", Parent: "lab", QOS: []string{"high"}, Users: []account.User{{Name: "anna", Default: true}}},
		{Name: "guests", Parent: "lab"},
	},
	QOS: []account.QOS{{Name: "normal"}, {Name: "low"}, {Name: "high"}},
	Partitions: []account.Partition{
		{Name: "gpu", DenyQOS: []string{"low"}},
		{Name: "short", AllowAccts: []string{"vision", "guests"}},
	},
}

func TestUnderAPolicy(t *testing.T) {
	r := rules.Under(site)
	tests := []struct {
		name                                 string
		user, account, qos, partition        string
		wantAccount, wantQOS, wrong, remedy_ string
	}{
		{name: "the default account, and the nearest QOS", user: "anna", wantAccount: "vision", wantQOS: "high"},
		{name: "the default of the account above", user: "anna", account: "nlp", wantAccount: "nlp", wantQOS: "normal"},
		{name: "another that may be used", user: "anna", account: "nlp", qos: "low", partition: "cpu", wantAccount: "nlp", wantQOS: "low"},
		{name: "the user's own list counts", user: "ben", partition: "cpu", wantAccount: "nlp", wantQOS: "low"},
		{name: "an open account", user: "zoe", wantAccount: "guests", wantQOS: "normal"},
		{name: "not his account", user: "ben", account: "vision", wrong: "ben may not use it", remedy_: "your accounts: nlp, guests"},
		{name: "an account above others", user: "anna", account: "lab", wrong: "anna may not use it"},
		{name: "no account", user: "anna", account: "x", wrong: "there is no such account"},
		{name: "cox.yaml's accounts do not count", user: "ben", account: "vision", wrong: "may not use it"},
		{name: "no QOS", user: "anna", qos: "x", wrong: "there is no such QOS", remedy_: "QOS here: normal, low, high"},
		{name: "not his QOS", user: "anna", qos: "low", wrong: "may not use it in account vision", remedy_: "high"},
		{name: "a QOS that the partition denies", user: "anna", account: "nlp", qos: "low", wrong: "QOS low may not be used in it"},
		{name: "an account that the partition does not allow", user: "anna", account: "nlp", partition: "short", wrong: "account nlp may not use it", remedy_: "vision, guests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(tt.user, func(s *job.Spec) {
				s.Account, s.QOS = tt.account, tt.qos
				if tt.partition != "" {
					s.Partitions = []string{tt.partition}
				}
			})
			err := r.Apply(s)
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(fault.Remedy(err), tt.remedy_) || fault.Remedy(err) == "" {
					t.Fatalf("%v, %s; want %s, %s", err, fault.Remedy(err), tt.wrong, tt.remedy_)
				}
				return
			}
			if err != nil || s.Account != tt.wantAccount || s.QOS != tt.wantQOS {
				t.Errorf("%q %q, %v", s.Account, s.QOS, err)
			}
		})
	}
	if got := r.AccountsOf("anna"); !slices.Equal(got, []string{"vision", "nlp", "guests"}) {
		t.Error(got)
	}
}

// TestWithoutAccountsThePolicySaysNothingOfThem: a policy of limits alone leaves the
// accounts of cox.yaml in force.
func TestWithoutAccountsThePolicySaysNothingOfThem(t *testing.T) {
	r := rules.Under(&account.Policy{Partitions: []account.Partition{{Name: "gpu", DenyAccts: []string{"vision"}}}})
	s := spec("anna", nil)
	if err := r.Apply(s); err != nil || s.Account != "nlp" || s.QOS != "" {
		t.Error(s.Account, s.QOS, err)
	}
	if err := r.Apply(spec("anna", func(s *job.Spec) { s.Account = "vision" })); err == nil {
		t.Error("a denied account passes")
	}
	if b := r.Beside(&account.Policy{}); len(b) > 0 {
		t.Error(b)
	}
}

func TestBeside(t *testing.T) {
	r := Rules{Accounts: []Account{{"nlp", []string{"anna", "carla"}}, {"old", []string{"anna"}}, {"guests", []string{"x"}}}}
	got := r.Beside(site)
	if len(got) != 2 || !strings.Contains(got[0], "carla is in account nlp") || !strings.Contains(got[1], "account old of cox.yaml is not in the policy") {
		t.Error(got)
	}
}

// TestBroken: who asks to be queued again where the rules end who makes room is told when he
// submits; nobody else is.
func TestBroken(t *testing.T) {
	for _, k := range []struct {
		qos, partition string
		requeue        bool
		by             []string
		want           string
	}{
		{"cut", "gpu", true, []string{"qos"}, "jobs of QOS cut in partition gpu end then as PREEMPTED"},
		{"plain", "gone", true, []string{"qos"}, "jobs of QOS plain in partition gone end"},
		{"cut", "gpu", false, []string{"qos"}, ""},
		{"cut", "gpu", true, nil, ""}, // nobody takes its place
		{"plain", "gpu", true, []string{"qos"}, ""},
		{"", "", true, []string{"qos"}, ""},
	} {
		r := rules.Under(&account.Policy{
			QOS:        []account.QOS{{Name: "cut", PreemptMode: account.PreemptCancel}, {Name: "plain"}},
			Partitions: []account.Partition{{Name: "gone", PreemptMode: account.PreemptCancel}},
			Preemption: account.Preemption{By: k.by},
		})
		s := &job.Spec{QOS: k.qos, Requeue: k.requeue, Source: job.Source{Given: map[string]string{"requeue": ""}}}
		if k.partition != "" {
			s.Partitions = []string{k.partition}
		}
		if got := r.Broken(s); (got == "") != (k.want == "") || !strings.Contains(got, k.want) {
			t.Errorf("%+v: %q", k, got)
		}
	}
	if got := rules.Broken(&job.Spec{Requeue: true}); got != "" {
		t.Errorf("without rules: %q", got)
	}
	r := rules.Under(&account.Policy{Preemption: account.Preemption{By: []string{"qos"}, Mode: account.PreemptCancel}})
	if got := r.Broken(&job.Spec{Requeue: true, Source: job.Source{Form: "sbatch"}}); got != "" {
		t.Errorf("a batch script that did not ask for it: %q", got)
	}
}

// TestFillBatch: the site's defaults apply to batch scripts that do not set the option, and to no
// other job.
//
// Seen to fail with: the options that were given not asked for, the form not asked for.
func TestFillBatch(t *testing.T) {
	for _, k := range []struct {
		form, given     string
		batch           account.Batch
		requeue, append bool
	}{
		{"sbatch", "", account.Batch{}, true, false},
		{"sbatch", "", account.Batch{Requeue: "on", OpenMode: account.OpenTruncate}, true, false},
		{"sbatch", "", account.Batch{Requeue: account.RequeueOff, OpenMode: account.OpenAppend}, false, true},
		{"sbatch", "requeue", account.Batch{Requeue: account.RequeueOff}, true, false},
		{"sbatch", "", account.Batch{RequeueExit: "1-9", RequeueExitHold: "75"}, true, false},
		{"native", "", account.Batch{RequeueExit: "1-9", RequeueExitHold: "75"}, true, false},
		{"sbatch", "open-mode", account.Batch{OpenMode: account.OpenAppend}, true, false},
		{"native", "", account.Batch{Requeue: account.RequeueOff, OpenMode: account.OpenAppend}, true, false},
	} {
		s := &job.Spec{Requeue: true, Source: job.Source{Form: k.form, Given: map[string]string{k.given: ""}}}
		rules.Under(&account.Policy{Batch: k.batch}).FillBatch(s)
		if s.Requeue != k.requeue || s.Output.Append != k.append {
			t.Errorf("%+v: requeue %v, append %v", k, s.Requeue, s.Output.Append)
		}
		codes := k.batch
		if k.form != "sbatch" {
			codes = account.Batch{}
		}
		if s.RequeueExit != codes.RequeueExit || s.RequeueExitHold != codes.RequeueExitHold {
			t.Errorf("%+v: requeued after %q, and held after %q", k, s.RequeueExit, s.RequeueExitHold)
		}
	}
}

// TestOneReservation: a list of reservations is refused as a list, not as an unknown name.
func TestOneReservation(t *testing.T) {
	err := rules.Under(site).checkReservation(&job.Spec{Reservation: "a,b"})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "one reservation only") {
		t.Error(err)
	}
}
