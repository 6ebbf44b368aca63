package daemon

import (
	"slices"
	"strconv"
	"strings"

	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// readPodShape reads what the pool's pods have in common.
func (s *kubeSettings) readPodShape(t *settings.Terms) error {
	t.Shape = render.Shape{
		HostNetwork: s.HostNetwork, LockMemory: s.LockMemory, ServiceAccount: s.Account, RuntimeClass: s.RuntimeClass,
		Labels: s.Labels, Annotations: s.Annotations, FSGroup: s.FSGroup,
	}
	t.Allow = s.Allow
	if s.UploadRoom != "" {
		q, err := quantity.ParseQuantity(s.UploadRoom)
		if err != nil || q.Value() < 1<<20 {
			return wrongKube("upload_room", "write 20Gi", "%.70q is no size of a MiB at least", s.UploadRoom)
		}
		t.UploadRoom = q.Value()
	}
	if s.Shm != "" {
		q, err := quantity.ParseQuantity(s.Shm)
		if err != nil || q.Value() < 1<<20 {
			return wrongKube("shm", "write 8Gi", "%.70q is no size of a MiB at least", s.Shm)
		}
		t.Shape.SharedMemory = q.Value()
	}
	if g := s.FSGroup; g != nil && (*g < 0 || *g > 1<<31-1) {
		return wrongKube("fs_group", "write the number of a group", "%d is none", *g)
	}
	for field, name := range map[string]string{"service_account": s.Account, "runtime_class": s.RuntimeClass} {
		if wrong := validation.IsDNS1123Subdomain(name); name != "" && len(wrong) > 0 {
			return wrongKube(field, "write a name that kubectl get shows", "%.70q: %s", name, settings.Misnamed(wrong))
		}
	}
	for _, m := range []struct {
		field string
		of    map[string]string
	}{{"labels", s.Labels}, {"annotations", s.Annotations}} {
		if err := settings.CheckMarks(m.of, m.field == "annotations"); err != nil {
			return wrongKube(m.field, fault.Remedy(err), "%w", err)
		}
	}
	for _, a := range s.Allow {
		if !slices.Contains(settings.Allowances(), a) {
			return wrongKube("allow", "there are "+strings.Join(settings.Allowances(), ", "), "there is no %.70q", a)
		}
	}
	return s.runAs(t)
}

// runAs reads as whom work runs.
func (s *kubeSettings) runAs(t *settings.Terms) error {
	user, group, both := strings.Cut(s.RunAs, ":")
	uid, err1 := strconv.ParseInt(user, 10, 32)
	gid, err2 := strconv.ParseInt(group, 10, 32)
	switch {
	case s.RunAs == "" || s.RunAs == "submitter" || s.RunAs == "image":
		return nil
	case !both || err1 != nil || err2 != nil || uid < 0 || gid < 0:
		return wrongKube("run_as", "write submitter, image, or numbers as 1000:1000", "there is no %.70q", s.RunAs)
	}
	t.Shape.User, t.Shape.Group = &uid, &gid
	return nil
}
