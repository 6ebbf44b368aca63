package work

import (
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/model/service"
)

// deploymentSpec is what Deployments and StatefulSets say.
type deploymentSpec struct {
	Replicas *int `json:"replicas"`
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	Template template `json:"template"`
	Strategy struct {
		Type          string `json:"type"`
		RollingUpdate struct {
			MaxSurge       *podspec.Quantity `json:"maxSurge"`
			MaxUnavailable *podspec.Quantity `json:"maxUnavailable"`
		} `json:"rollingUpdate"`
	} `json:"strategy"`
	ProgressDeadlineSeconds *int64 `json:"progressDeadlineSeconds"`
	Paused                  bool   `json:"paused"`

	ServiceName string `json:"serviceName"` // of a StatefulSet
}

// compileDeployment makes a service of a Deployment (apps/v1).
func (f *file) compileDeployment(b *builder) error {
	var doc struct {
		Spec deploymentSpec `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	s := &doc.Spec
	if s.Paused {
		return b.fail("spec.paused", "leave it out, and hold the rollout later: cox service rollout pause "+b.w.Name, "a new service cannot be paused")
	}
	n := orOne(s.Replicas)
	update := service.Update{Step: service.DefaultStep, Timeout: service.DefaultTimeout}
	if s.ProgressDeadlineSeconds != nil && *s.ProgressDeadlineSeconds > 0 {
		update.Timeout = time.Duration(*s.ProgressDeadlineSeconds) * time.Second
	}
	if s.Strategy.Type == "Recreate" {
		update.Unavailable = max(n, 1)
	} else {
		var err error
		r := &s.Strategy.RollingUpdate
		if update.Surge, err = b.partOf(r.MaxSurge, n, true, "spec.strategy.rollingUpdate.maxSurge"); err != nil {
			return err
		}
		if update.Unavailable, err = b.partOf(r.MaxUnavailable, n, false, "spec.strategy.rollingUpdate.maxUnavailable"); err != nil {
			return err
		}
		if update.Surge == 0 && update.Unavailable == 0 {
			update.Unavailable = 1 // as Kubernetes has it
		}
	}
	role := podspec.Role{Name: podRole, Replicas: 1, PodName: b.w.Name + "-{task}", Template: s.Template.RawMessage}
	p, err := b.addRole(role, "spec.template")
	if err != nil {
		return err
	}
	return b.setService(p, n, update, s.Selector.MatchLabels)
}

// compileStateful makes a service of a StatefulSet (apps/v1): its replicas keep their names, NAME-0 and so on,
// and are replaced one by one.
func (f *file) compileStateful(b *builder) error {
	var doc struct {
		Spec deploymentSpec `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	s := &doc.Spec
	role := podspec.Role{
		Name: podRole, Replicas: 1, PodName: b.w.Name + "-{task}", Subdomain: s.ServiceName, Template: s.Template.RawMessage,
		Labels: map[string]string{"statefulset.kubernetes.io/pod-name": b.w.Name + "-{task}", "apps.kubernetes.io/pod-index": "{task}"},
	}
	p, err := b.addRole(role, "spec.template")
	if err != nil {
		return err
	}
	if s.ServiceName != "" {
		b.addService(s.ServiceName, "")
	}
	update := service.Update{Unavailable: 1, InPlace: true, Step: service.DefaultStep, Timeout: service.DefaultTimeout}
	return b.setService(p, orOne(s.Replicas), update, s.Selector.MatchLabels)
}

// partOf is a number of pods, or a part of all in per cent: 25 % where nothing is said.
func (b *builder) partOf(q *podspec.Quantity, all int, up bool, path string) (int, error) {
	text := "25%"
	if q != nil {
		text = string(*q)
	}
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > maxTasks {
		return 0, b.fail(path, "write a number of pods, or a part of them such as 25%", "%.40q is no number of pods", text)
	}
	if !percent {
		return n, nil
	}
	if up {
		return (n*all + 99) / 100, nil
	}
	return n * all / 100, nil
}
