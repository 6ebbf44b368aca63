package rest

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

func TestNumbers(t *testing.T) {
	for text, want := range map[string]number{
		`7`: {true, 7}, `"7"`: {true, 7}, `" 7 "`: {true, 7}, `0`: {true, 0}, `-1`: {true, -1}, `7.5`: {true, 7.5},
		`{"set":true,"infinite":false,"number":7}`: {true, 7}, `{"number":7}`: {true, 7}, `{"set":false,"infinite":false,"number":7}`: {}, `{"set":true,"infinite":true,"number":7}`: {},
		`null`: {}, `"x"`: {}, `""`: {}, `[]`: {}, `{}`: {}, `true`: {}, `{"set":"yes","number":"7"}`: {},
	} {
		var got number
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for n, want := range map[float64]uint32{0: 0, 7: 7, -1: 0, 0xfffffffe: 0, 0xfffffffd: 0, 0xfffffffc: 0xfffffffc, 1e300: 0} {
		if got := (number{true, n}).uint32(); got != want {
			t.Errorf("%v: %d, want %d", n, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]words{`["A","B"]`: {"A", "B"}, `"A"`: {"A"}, `"A, B"`: {"A", "B"}, `""`: nil, `null`: nil, `[]`: nil, `7`: nil, `{"a":1}`: nil, `["A",null,7]`: {"A", "7"}} {
		var got words
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]text{`"a"`: "a", `null`: "", `7`: "7", `{}`: "", `["a"]`: ""} {
		var got struct{ T textOf }
		if err := json.Unmarshal([]byte(`{"T":`+text+`}`), &got); err != nil || got.T != want {
			t.Errorf("%s: %q, %v, want %q", text, got.T, err, want)
		}
	}
}

type textOf = text

func TestExits(t *testing.T) {
	for text, want := range map[string]exit{
		`768`: {true, job.ExitCode{Status: 3}}, `9`: {true, job.ExitCode{Signal: 9}}, `0`: {true, job.ExitCode{}}, `null`: {}, `"x"`: {}, `{}`: {},
		`{"status":["FAILED"],"return_code":{"set":true,"number":3},"signal":{"id":{"set":false,"number":0},"name":""}}`:    {true, job.ExitCode{Status: 3}},
		`{"status":["SIGNALED"],"return_code":{"set":false,"number":0},"signal":{"id":{"set":true,"number":9},"name":"K"}}`: {true, job.ExitCode{Signal: 9}},
		`{"status":"SIGNALED","return_code":null,"signal":{"signal_id":9,"name":"Killed"}}`:                                 {true, job.ExitCode{Signal: 9}},
		`{"status":"ERROR","return_code":3}`: {true, job.ExitCode{Status: 3}},
	} {
		var got exit
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestStates(t *testing.T) {
	for text, want := range map[string]site.Job{
		`["RUNNING"]`: {State: site.Running}, `"RUNNING"`: {State: site.Running}, `["RUNNING","CONFIGURING"]`: {State: site.Running}, `["FAILED","COMPLETING"]`: {Completing: true},
		`"COMPLETING"`: {Completing: true}, `["RUNNING","STOPPED"]`: {State: site.Suspended}, `["PENDING","REQUEUE_HOLD"]`: {State: site.Pending, Held: true},
		`["PENDING","SPECIAL_EXIT"]`: {State: site.Pending, Held: true}, `["COMPLETED","SOMETHING_NEW"]`: {State: site.Completed}, `["OUT_OF_MEMORY"]`: {State: site.OutOfMemory},
		`["PENDING","REQUEUED"]`: {State: site.Pending},
	} {
		var w words
		_ = json.Unmarshal([]byte(text), &w)
		var got site.Job
		if err := setState(&got, w); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, w := range []words{nil, {"NONSENSE"}} {
		if err := setState(&site.Job{}, w); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%q: %v", w, err)
		}
	}
}

// A number of Slurm's that is not known says nothing of what has happened.
func TestKinds(t *testing.T) {
	for errno, want := range map[int]fault.Kind{
		-1: fault.Unavailable, 0: fault.Unavailable, 1: fault.Unavailable, 11: fault.Unavailable, 1007: fault.Unavailable, 5004: fault.Unavailable, 6000: fault.Unavailable, 7000: fault.Unavailable, 123456: fault.Unavailable,
		2020: fault.Unavailable, 2027: fault.Unavailable, 2000: fault.Invalid, 2050: fault.Exhausted, 2150: fault.Invalid, 8000: fault.Invalid, 9001: fault.Invalid, 2002: fault.Permission, 2017: fault.NotFound, 9003: fault.NotFound,
	} {
		if got := kindOf(errno); got != want {
			t.Errorf("%d: %v, want %v", errno, got, want)
		}
	}
}

func TestLiterals(t *testing.T) {
	for _, s := range []string{"", "a", "\"\\\n\t\r\x01\x1f\x7f</script>&\u2028é", "a\x00b"} {
		var got string
		if err := json.Unmarshal(appendLiteral(nil, s), &got); err != nil || got != s {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	if got := string(appendLiteral(nil, "\xff")); got != "\"\xff\"" {
		t.Errorf("%q", got)
	}
}
