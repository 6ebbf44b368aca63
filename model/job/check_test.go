package job

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/resource"
)

func TestASpecThatNoJobCanHaveIsRefused(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"":            func(*Spec) {},
		"nice":        func(s *Spec) { s.Nice = math.MinInt64 },
		"priority":    func(s *Spec) { s.Priority = math.MaxInt64 },
		"begin":       func(s *Spec) { s.Begin = time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) },
		"deadline":    func(s *Spec) { s.Deadline = time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC) },
		"delay":       func(s *Spec) { s.Depends.Clauses = []DependencyClause{{Kind: After, Delay: -1}} },
		"index 3":     func(s *Spec) { s.Array = &ArraySpec{Indices: []uint32{3, 3}} },
		"one index":   func(s *Spec) { s.Array = &ArraySpec{} },
		"time_limit":  func(s *Spec) { s.TimeLimit = -time.Second },
		"signal":      func(s *Spec) { s.Signal = &SignalSpec{Before: math.MaxInt64} },
		"task group":  func(s *Spec) { s.Groups = nil },
		"[0].nodes":   func(s *Spec) { s.Groups[0].Nodes.Max = math.MaxInt },
		"tasks.want":  func(s *Spec) { s.Groups[0].Tasks.Want = -1 },
		"_node.cpu":   func(s *Spec) { s.Groups[0].PerNode.CPU = -1 },
		"task.memory": func(s *Spec) { s.Groups[0].PerTask.Memory = resource.Unlimited },
		"\"a\" comes": func(s *Spec) { s.Groups[0].Total.Named = []resource.Named{{Name: "b"}, {Name: "a"}} },
		"share":       func(s *Spec) { s.Groups[0].Total.Devices = []resource.DeviceRequest{{Count: 1, Share: 1001}} },
		"more than": func(s *Spec) {
			s.Groups[0].PerNode.Devices = make([]resource.DeviceRequest, 2)
			s.Groups[0].PerNode.Devices[0].Count = maxCount
			s.Groups[0].PerNode.Devices[1].Count = 1
		},
	} {
		s := &Spec{Groups: []TaskGroup{{Nodes: Range{1, 2}, Tasks: Count{Want: 2}}}, Array: &ArraySpec{Indices: []uint32{0, 7}}, Begin: time.Unix(1e9, 0), TimeLimit: time.Hour}
		change(s)
		err := s.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
