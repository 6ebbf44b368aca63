package nodefence

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/engine"
)

// A fence stands with both taints; what else a node has stays.
func TestMark(t *testing.T) {
	f := engine.NodeFence{Epoch: 5, Reason: "pool b has it"}
	other := corev1.Taint{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoExecute}
	note := map[string]string{Key: `{"epoch":5,"reason":"pool b has it"}`}
	for name, c := range map[string]struct {
		taints []corev1.Taint
		note   map[string]string
		want   Mark
	}{
		"None":           {[]corev1.Taint{other}, nil, Mark{}},
		"Whole":          {withTaints([]corev1.Taint{other}, f, effects...), note, Mark{f, true}},
		"Half":           {withTaints([]corev1.Taint{other}, f, effects[0]), note, Mark{f, false}},
		"TaintsTaken":    {[]corev1.Taint{other}, note, Mark{f, false}},
		"NoteTaken":      {withTaints(nil, f, effects...), nil, Mark{engine.NodeFence{Epoch: 5}, true}},
		"NoteOfAnother":  {withTaints(nil, engine.NodeFence{Epoch: 6}, effects...), note, Mark{engine.NodeFence{Epoch: 6}, true}},
		"NotOurNumber":   {[]corev1.Taint{{Key: Key, Value: "x", Effect: corev1.TaintEffectNoExecute}}, nil, Mark{}},
		"TakenOverTwice": {withTaints(withTaints(nil, engine.NodeFence{Epoch: 4}, effects...), f, effects...), note, Mark{f, true}},
	} {
		if m := Read(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: c.note}, Spec: corev1.NodeSpec{Taints: c.taints}}); m != c.want {
			t.Errorf("%s: %+v, want %+v", name, m, c.want)
		}
	}
	if left := withTaints(withTaints([]corev1.Taint{other}, f, effects...), f); len(left) != 1 || left[0] != other {
		t.Errorf("without the fence there are %v", left)
	}
}

func TestToleratesTheFence(t *testing.T) {
	seconds := int64(30)
	for name, c := range map[string]struct {
		o    corev1.Toleration
		want bool
	}{
		"Everything":   {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"NoExecute":    {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, true},
		"Ours":         {corev1.Toleration{Key: Key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, true},
		"NoSchedule":   {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, false},
		"Another":      {corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists}, false},
		"OneEpoch":     {corev1.Toleration{Key: Key, Operator: corev1.TolerationOpEqual, Value: "5"}, false},
		"ForAWhile":    {corev1.Toleration{Key: Key, Operator: corev1.TolerationOpExists, TolerationSeconds: &seconds}, false},
		"NothingAtAll": {corev1.Toleration{}, false},
	} {
		if got := toleratesFence(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{c.o}}}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
