package work

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// Keys of the Secret by which the launcher of an MPIJob reaches its workers, as the MPI operator names them.
const (
	sshPrivate = "ssh-privatekey"
	sshPublic  = "ssh-publickey"
)

// mpiHostfile is where the operator puts the hostfile.
const mpiHostfile = "/etc/mpi/hostfile"

// compileMPI makes a gang of an MPIJob (kubeflow.org/v2beta1 as the MPI operator 0.6 has it; v1 is taken as that: workers
// are reached by ssh). The launcher's end is the job's.
func (f *file) compileMPI(b *builder) error {
	var doc struct {
		Spec struct {
			Specs          map[string]replicaSpec `json:"mpiReplicaSpecs"`
			Slots          *int                   `json:"slotsPerWorker"`
			RunPolicy      runPolicy              `json:"runPolicy"`
			SSHMount       string                 `json:"sshAuthMountPath"`
			Implementation string                 `json:"mpiImplementation"`
		} `json:"spec"`
	}
	if err := b.d.decode(&doc); err != nil {
		return err
	}
	s := &doc.Spec
	launcher, ok := s.Specs["Launcher"]
	worker, has := s.Specs["Worker"]
	switch {
	case !ok || orOne(launcher.Replicas) != 1:
		return b.fail("spec.mpiReplicaSpecs", "write Launcher with one pod", "an MPIJob has one launcher")
	case !has || orOne(worker.Replicas) < 1:
		return b.fail("spec.mpiReplicaSpecs", "write Worker", "an MPIJob has workers")
	}
	if strings.HasSuffix(b.d.APIVersion, "/v1") {
		b.warn("apiVersion", "v1 is taken as v2beta1: mpirun reaches the workers by ssh, so their image needs sshd")
	}
	if err := b.checkGang(orOne(worker.Replicas), "spec.mpiReplicaSpecs.Worker.replicas"); err != nil {
		return err
	}
	var hosts strings.Builder
	slots := orOne(s.Slots)
	for i := range orOne(worker.Replicas) {
		line := fmt.Sprintf("{pod:worker:%d} slots=%d\n", i, slots)
		if s.Implementation == "Intel" || s.Implementation == "MPICH" {
			line = fmt.Sprintf("{pod:worker:%d}:%d\n", i, slots)
		}
		hosts.WriteString(line)
	}
	env := []podspec.EnvVar{{Name: "K_MPI_JOB_ROLE", Value: "launcher"}}
	switch s.Implementation {
	case "", "OpenMPI":
		env = append(
			env, podspec.EnvVar{Name: "OMPI_MCA_orte_keep_fqdn_hostnames", Value: "true"}, podspec.EnvVar{Name: "OMPI_MCA_orte_default_hostfile", Value: mpiHostfile},
			podspec.EnvVar{Name: "PRTE_MCA_prte_default_hostfile", Value: mpiHostfile}, podspec.EnvVar{Name: "OMPI_MCA_plm_rsh_args", Value: "-o ConnectionAttempts=10 -o StrictHostKeyChecking=no"},
		)
	case "Intel":
		env = append(env, podspec.EnvVar{Name: "I_MPI_HYDRA_HOST_FILE", Value: mpiHostfile}, podspec.EnvVar{Name: "I_MPI_PERHOST", Value: strconv.Itoa(slots)}, podspec.EnvVar{Name: "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", Value: "-o ConnectionAttempts=10 -o StrictHostKeyChecking=no"})
	case "MPICH":
		env = append(env, podspec.EnvVar{Name: "HYDRA_HOST_FILE", Value: mpiHostfile}, podspec.EnvVar{Name: "HYDRA_LAUNCH_EXTRA_ARGS", Value: "-o ConnectionAttempts=10 -o StrictHostKeyChecking=no"})
	default:
		return b.fail("spec.mpiImplementation", "write OpenMPI, Intel or MPICH", "%.40q is none that is known here", s.Implementation)
	}
	secret := b.w.Name + "-ssh"
	mount := firstText(s.SSHMount, "/root/.ssh")
	for _, r := range []struct {
		name, key string
		of        replicaSpec
		role      podspec.Role
	}{
		{"launcher", "Launcher", launcher, podspec.Role{Replicas: 1, PodName: b.w.Name + "-launcher", Env: env, Files: map[string]string{mpiHostfile: hosts.String()}}},
		{"worker", "Worker", worker, podspec.Role{Replicas: orOne(worker.Replicas), PodName: b.w.Name + "-worker-{i}", Env: []podspec.EnvVar{{Name: "K_MPI_JOB_ROLE", Value: "worker"}}}},
	} {
		path := "spec.mpiReplicaSpecs." + r.key + ".template"
		t, err := r.of.Template.edit(func(spec map[string]any) error { return mountKeys(spec, secret, mount, r.name == "worker") })
		if err != nil {
			return b.fail(path, "", "%v", err)
		}
		r.role.Name, r.role.Template, r.role.Labels = r.name, t.RawMessage, b.trainingLabels(r.name)
		p, err := b.addRole(r.role, path)
		if err != nil {
			return err
		}
		b.setLimit(templateLimit(p))
	}
	b.w.Set.Complete = &podspec.Complete{Roles: []string{"launcher"}}
	b.setRunPolicy(&s.RunPolicy, true) // the launcher is a Job, which begins it anew
	return b.makeKeys(secret)
}

// mountKeys adds the keys to the first container of a pod, and has a worker without a command run sshd.
func mountKeys(spec map[string]any, secret, mount string, worker bool) error {
	c, err := mainContainer(spec)
	if err != nil {
		return err
	}
	items := []any{
		map[string]any{"key": sshPrivate, "path": "id_rsa"}, map[string]any{"key": sshPublic, "path": "id_rsa.pub"}, map[string]any{"key": sshPublic, "path": "authorized_keys"},
	}
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, map[string]any{"name": "ssh-auth", "secret": map[string]any{"secretName": secret, "defaultMode": 0o600, "items": items}})
	mounts, _ := c["volumeMounts"].([]any)
	c["volumeMounts"] = append(mounts, map[string]any{"name": "ssh-auth", "mountPath": mount})
	if worker && len(textsOf(c["command"])) == 0 && len(textsOf(c["args"])) == 0 {
		c["command"] = []any{"/usr/sbin/sshd", "-De"}
	}
	return nil
}

// makeKeys makes a pair of keys for the pods of the job, kept as a Secret of the file is.
func (b *builder) makeKeys(secret string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return err
	}
	pub, err := ssh.NewPublicKey(public)
	if err != nil {
		return err
	}
	if b.w.Secrets == nil {
		b.w.Secrets = map[string][]byte{}
	}
	for key, value := range map[string][]byte{sshPrivate: pem.EncodeToMemory(block), sshPublic: ssh.MarshalAuthorizedKey(pub)} {
		store := podspec.StoreName(secret, key)
		if err := job.CheckSecretName(store); err != nil {
			return b.fail("metadata.name", "choose a shorter name", "%v", err)
		}
		b.w.Secrets[store] = value
	}
	for _, key := range []string{sshPrivate, sshPublic} {
		store := podspec.StoreName(secret, key)
		b.w.Job.Secrets = append(b.w.Job.Secrets, job.Secret{Name: store, File: store})
	}
	for i := range b.w.Set.Secrets {
		if b.w.Set.Secrets[i].Name == secret {
			b.w.Set.Secrets[i] = podspec.Secret{Name: secret, Keys: []string{sshPrivate, sshPublic}}
		}
	}
	return nil
}
