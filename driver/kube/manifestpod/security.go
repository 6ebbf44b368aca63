package manifestpod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
)

// securityUses are the security settings of a template by which its containers may do more, or are somebody else,
// than those of the pool's other jobs.
func (w *Work) securityUses(a *render.Attempt, s *corev1.PodSpec) (out []use) {
	add := func(is bool, path, allow, why string) {
		if is {
			out = append(out, use{path: path, allow: allow, why: why})
		}
	}
	user, group := w.runsAs(a)
	someone := func(path string, id, own *int64) {
		add(id != nil && own != nil && *id != *own, path, "run_as_user", "run as another user or group than the pool has them run")
	}
	if c := s.SecurityContext; c != nil {
		const at = "spec.securityContext"
		someone(at+".runAsUser", c.RunAsUser, user)
		someone(at+".runAsGroup", c.RunAsGroup, group)
		someone(at+".fsGroup", c.FSGroup, group)
		add(user != nil && slices.ContainsFunc(c.SupplementalGroups, func(g int64) bool { return g != *group }), at+".supplementalGroups", "run_as_user", "be in groups of their choice")
		add(len(c.Sysctls) > 0, at+".sysctls", "privileged", "set sysctls")
		add(isUnconfined(c.SeccompProfile), at+".seccompProfile", "privileged", "run without the seccomp profile of the container runtime")
		add(isUnconfinedAppArmor(c.AppArmorProfile), at+".appArmorProfile", "privileged", "run without the AppArmor profile of the container runtime")
		add(c.SELinuxOptions != nil, at+".seLinuxOptions", "privileged", "choose their SELinux label")
		add(c.WindowsOptions != nil, at+".windowsOptions", "privileged", "have security settings of Windows")
	}
	eachContainer(s, func(at string, k *corev1.Container) {
		for i, p := range k.Ports {
			add(p.HostPort != 0 && !s.HostNetwork, index(at+".ports", i)+".hostPort", "host_ports", "have ports of their node")
		}
		for _, m := range k.VolumeMounts {
			add(m.MountPropagation != nil && *m.MountPropagation == corev1.MountPropagationBidirectional, at+".volumeMounts: "+m.MountPath, "privileged", "mount what the node sees")
		}
		c := k.SecurityContext
		if c == nil {
			return
		}
		at += ".securityContext"
		someone(at+".runAsUser", c.RunAsUser, user)
		someone(at+".runAsGroup", c.RunAsGroup, group)
		add(c.Privileged != nil && *c.Privileged, at+".privileged", "privileged", "run privileged containers")
		add(c.AllowPrivilegeEscalation != nil && *c.AllowPrivilegeEscalation, at+".allowPrivilegeEscalation", "privileged", "get more privileges than they begin with")
		if c.Capabilities != nil {
			for _, name := range c.Capabilities.Add {
				switch name {
				case "IPC_LOCK":
					add(true, at+".capabilities.add: IPC_LOCK", "lock_memory", "lock memory beyond the limit")
				default:
					add(!slices.Contains(givenCapabilities, name), at+".capabilities.add: "+string(name), "privileged", "have capabilities of the kernel that containers do not begin with")
				}
			}
		}
		add(c.ProcMount != nil && *c.ProcMount != corev1.DefaultProcMount, at+".procMount", "privileged", "see all of /proc")
		add(isUnconfined(c.SeccompProfile), at+".seccompProfile", "privileged", "run without the seccomp profile of the container runtime")
		add(isUnconfinedAppArmor(c.AppArmorProfile), at+".appArmorProfile", "privileged", "run without the AppArmor profile of the container runtime")
		add(c.SELinuxOptions != nil, at+".seLinuxOptions", "privileged", "choose their SELinux label")
		add(c.WindowsOptions != nil, at+".windowsOptions", "privileged", "have security settings of Windows")
	})
	return out
}

// givenCapabilities are those that a container runtime gives anyway, and that reach no further than the container.
var givenCapabilities = []corev1.Capability{
	"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "SETFCAP",
}

// isUnconfined reports whether a seccomp profile is less than the runtime's own.
func isUnconfined(p *corev1.SeccompProfile) bool {
	return p != nil && p.Type != corev1.SeccompProfileTypeRuntimeDefault
}

// isUnconfinedAppArmor reports whether an AppArmor profile is less than the runtime's own.
func isUnconfinedAppArmor(p *corev1.AppArmorProfile) bool {
	return p != nil && p.Type != corev1.AppArmorProfileTypeRuntimeDefault
}

// runsAs is as whom the pool has work run; nil: as the user of its image.
func (w *Work) runsAs(a *render.Attempt) (user, group *int64) {
	if w.terms.Shape.User != nil {
		return w.terms.Shape.User, w.terms.Shape.Group
	}
	if a.AsImage {
		return nil, nil
	}
	o := a.Launch.Job.Spec.Owner
	uid, gid := int64(o.UID), int64(o.GID)
	return &uid, &gid
}

// settleRights puts into a pod what the pool has for what the template leaves open, and what nobody may have
// without being let.
func (w *Work) settleRights(a *render.Attempt, s *corev1.PodSpec) {
	lets := func(what string) bool { return slices.Contains(w.terms.Allow, what) }
	if user, group := w.runsAs(a); user != nil && !lets("run_as_user") {
		if s.SecurityContext == nil {
			s.SecurityContext = new(corev1.PodSecurityContext)
		}
		c := s.SecurityContext
		if c.RunAsUser == nil {
			c.RunAsUser = user
		}
		if c.RunAsGroup == nil {
			c.RunAsGroup = group
		}
		if c.FSGroup == nil && a.FSGroup != nil {
			c.FSGroup = a.FSGroup
		}
	}
	if !lets("privileged") {
		if s.SecurityContext == nil {
			s.SecurityContext = new(corev1.PodSecurityContext)
		}
		if s.SecurityContext.SeccompProfile == nil {
			s.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		}
		eachContainer(s, func(_ string, k *corev1.Container) {
			if k.SecurityContext == nil {
				k.SecurityContext = new(corev1.SecurityContext)
			}
			if no := false; k.SecurityContext.AllowPrivilegeEscalation == nil {
				k.SecurityContext.AllowPrivilegeEscalation = &no
			}
		})
	}
	if a.ServiceAccount != "" && s.ServiceAccountName == "" {
		yes := true
		s.ServiceAccountName, s.DeprecatedServiceAccount = a.ServiceAccount, ""
		if s.AutomountServiceAccountToken == nil {
			s.AutomountServiceAccountToken = &yes
		}
	} else if no := false; s.AutomountServiceAccountToken == nil && !lets("service_account") {
		s.AutomountServiceAccountToken = &no
	}
	if s.PriorityClassName == "" {
		s.PriorityClassName = a.PriorityClass
	}
	if s.RuntimeClassName == nil && a.RuntimeClass != "" {
		s.RuntimeClassName = &a.RuntimeClass
	}
	for _, name := range a.PullSecrets {
		if ref := (corev1.LocalObjectReference{Name: name}); !slices.Contains(s.ImagePullSecrets, ref) {
			s.ImagePullSecrets = append(s.ImagePullSecrets, ref)
		}
	}
}
