package render

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// ParseToleration reads a toleration as a job writes it: "KEY" or "KEY=VALUE", and ":EFFECT"
// behind it for that effect alone.
func ParseToleration(text string) (corev1.Toleration, error) {
	head, effect, _ := strings.Cut(text, ":")
	key, value, equal := strings.Cut(head, "=")
	t := corev1.Toleration{Key: key, Value: value, Effect: corev1.TaintEffect(effect), Operator: corev1.TolerationOpExists}
	if equal {
		t.Operator = corev1.TolerationOpEqual
	}
	if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 ||
		!slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect) {
		return t, fault.New(fault.Invalid, "%.70q is no toleration", text).Advise("write KEY, KEY=VALUE or KEY=VALUE:NoSchedule")
	}
	if strings.HasPrefix(key, "coxswain.sh/") {
		return t, fault.New(fault.Invalid, "%.70q: nodes with that taint are kept for a pool", text).Advise("submit to that pool")
	}
	return t, nil
}
