package container

import (
	"maps"
	"slices"
	"strings"
)

// notOfImage are variables that a runtime sets in every container, whatever its image says.
var notOfImage = []string{"container", "HOSTNAME", "TERM", "PWD", "OLDPWD", "SHLVL", "_"}

// locale are variables that describe the node's language, which an image may not have.
var locale = []string{"LANG", "LANGUAGE", "LC_ALL"}

// Only begins the name of a variable that is one of a container alone, without the prefix: it outranks that
// of the image and of the node, and the runtime and srun do not see it.
const Only = "COX_ENV_"

// Environ is the environment of a process in a container, as pyxis has it: the job's, without its
// locale, over which the image's is laid. The variables named in keep are the job's all the same.
// Bin, if it is not empty, comes first in PATH.
func Environ(job, image, keep []string, bin string) []string {
	job, keep = unwrapOnly(job, keep)
	kept := func(name string) bool { return slices.Contains(keep, name) }
	own := map[string]string{}
	var names []string
	for _, v := range image {
		name, value, ok := strings.Cut(v, "=")
		if ok && !slices.Contains(notOfImage, name) {
			if _, there := own[name]; !there {
				names = append(names, name)
			}
			own[name] = value
		}
	}
	if path, ok := own["PATH"]; ok && bin != "" {
		own["PATH"] = bin + ":" + path
	}
	ranks := pytorchRanks(own, job)
	out := make([]string, 0, len(job)+len(own)+len(ranks))
	has := map[string]bool{}
	for _, v := range job {
		name, _, _ := strings.Cut(v, "=")
		_, replaced := own[name]
		if _, ranked := ranks[name]; !kept(name) && (ranked || replaced || slices.Contains(locale, name)) {
			continue
		}
		has[name] = true
		out = append(out, v)
	}
	for _, name := range names {
		if !has[name] {
			out = append(out, name+"="+own[name])
		}
	}
	for _, name := range []string{"RANK", "LOCAL_RANK"} {
		if value, ok := ranks[name]; ok && !has[name] {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// pytorchRanks are the variables by which PyTorch finds its ranks without MPI, which pyxis sets in
// images that say that they hold PyTorch.
func pytorchRanks(image map[string]string, job []string) map[string]string {
	if _, ok := image["PYTORCH_VERSION"]; !ok {
		return nil
	}
	out := map[string]string{}
	for _, v := range job {
		name, value, _ := strings.Cut(v, "=")
		switch name {
		case "SLURM_PROCID":
			out["RANK"] = value
		case "SLURM_LOCALID":
			out["LOCAL_RANK"] = value
		}
	}
	return out
}

// unwrapOnly puts variables of a container alone in the place of others of their names.
func unwrapOnly(job, keep []string) (env, kept []string) {
	own := map[string]string{}
	for _, v := range job {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, Only) {
			own[strings.TrimPrefix(name, Only)] = value
		}
	}
	if len(own) == 0 {
		return job, keep
	}
	kept = slices.Clone(keep)
	for _, v := range job {
		name, _, _ := strings.Cut(v, "=")
		if _, there := own[name]; !there && !strings.HasPrefix(name, Only) {
			env = append(env, v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env, kept = append(env, name+"="+own[name]), append(kept, name)
	}
	return env, kept
}
