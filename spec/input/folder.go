package input

import (
	"path"
	"slices"
	"strings"
)

// FolderRemedy says what to name instead of a folder, by the names of what it has.
func FolderRemedy(folder string, names []string) string {
	has := func(name string) bool { return slices.Contains(names, name) }
	switch {
	case has("Chart.yaml"):
		return "it is a Helm chart: helm template " + folder + " > rendered.yaml, and submit that"
	case has("kustomization.yaml"), has("kustomization.yml"):
		return "it is for kustomize: kubectl kustomize " + folder + " > rendered.yaml, and submit that"
	}
	var scripts []string
	for _, n := range names {
		switch path.Ext(n) {
		case ".sbatch", ".slurm", ".sh", ".job", ".yaml", ".yml":
			scripts = append(scripts, path.Join(folder, n))
		}
	}
	const most = 3
	switch {
	case len(scripts) == 0:
		return "name a batch script or a job in YAML"
	case len(scripts) > most:
		scripts = append(scripts[:most], "…")
	}
	return "name one of its files: " + strings.Join(scripts, ", ")
}
