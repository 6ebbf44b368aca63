package render

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// SecretsName is the name of the Secret with the values of the job's secrets.
func (a *Attempt) SecretsName() string { return a.name() + "-secrets" }

// CheckSecrets refuses values that one Secret cannot hold.
func CheckSecrets(given []engine.Secret) error {
	size, counted := 0, map[string]bool{}
	for _, s := range given {
		if !counted[s.Name] {
			size += len(s.Value)
		}
		counted[s.Name] = true
	}
	if size > corev1.MaxSecretSize {
		return engine.About(fault.New(fault.Invalid, "the secrets of the job are %d bytes, and a cluster keeps %d of an attempt", size, corev1.MaxSecretSize).
			Advise("give the job fewer secrets, or keep large files on a volume that the pods mount"), "secrets")
	}
	return nil
}

// Secrets is the Secret with the values of the job's secrets, each under the secret's name. It belongs to
// the root, so it goes with it. nil: the job has none.
func (a *Attempt) Secrets(root types.UID, values map[string][]byte) *corev1.Secret {
	if len(a.Launch.Job.Spec.Secrets) == 0 {
		return nil
	}
	yes := true
	s := &corev1.Secret{Data: map[string][]byte{}, Immutable: &yes, Type: corev1.SecretTypeOpaque}
	s.TypeMeta, s.ObjectMeta = a.objectMeta(a.SecretsName(), "Secret", root)
	for _, one := range a.Launch.Job.Spec.Secrets {
		s.Data[one.Name] = values[one.Name]
	}
	return s
}

// addSecrets mounts the values of the job's secrets, and a directory in memory where the agent puts them
// for the pod's user alone: the files of a Secret belong to root.
func (a *Attempt) addSecrets(p *corev1.Pod) {
	secrets := a.Launch.Job.Spec.Secrets
	if len(secrets) == 0 {
		return
	}
	var items []corev1.KeyToPath
	for _, s := range secrets {
		items = append(items, corev1.KeyToPath{Key: s.Name, Path: s.FileName()})
	}
	slices.SortFunc(items, func(x, y corev1.KeyToPath) int { return strings.Compare(x.Path, y.Path) })
	readable := int32(0o444)
	p.Spec.Volumes = append(p.Spec.Volumes,
		corev1.Volume{Name: "cox-secrets", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: a.SecretsName(), Items: items, DefaultMode: &readable}}},
		corev1.Volume{Name: "cox-private", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
	c := &p.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: "cox-secrets", MountPath: podagent.SecretsDir, ReadOnly: true},
		corev1.VolumeMount{Name: "cox-private", MountPath: podagent.PrivateDir})
}
