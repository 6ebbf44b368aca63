package input

import (
	"errors"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec"
)

// sample is a text as people hand it in, what it is, and a part of what to do with it.
type sample struct {
	about, name, text string
	kind              Kind
	says, remedy      string // parts of the refusal
	line              int
}

var samples = []sample{
	{"a batch script", "train.sbatch", "#!/bin/bash\n#SBATCH -N 2\nsrun hostname\n", Batch, "", "", 0},
	{"a script of Python for sbatch", "train.py", "#!/usr/bin/env python3\n#SBATCH --gres=gpu:1\nimport torch\n", Batch, "", "", 0},
	{"a batch script with a name of YAML", "job.yaml", "#!/bin/sh\n#SBATCH -n1\nhostname\n", Batch, "", "", 0},
	{"docker's own templates in a batch script", "a.sh", "#!/bin/sh\n#SBATCH -N1\ndocker ps --format '{{.Names}}'\npython -c \"print(f'{{x}}')\"\n", Batch, "", "", 0},
	{"variables in a directive: sbatch takes them as they are", "a.sh", "#!/bin/sh\n#SBATCH -J ${USER}\nhostname\n", Batch, "", "", 0},
	{"commands without #!: spec/sbatch says what is missing", "a.sh", "export A=1\nhostname\n", Batch, "", "", 0},
	{"a script that another batch system reads too", "a.pbs", "#!/bin/sh\n#PBS -N x\nhostname\n", Batch, "", "", 0},

	{"a job", "train.yaml", "name: train\nnodes: 2\ngpus_per_node: 8\ncommand: python train.py\n", Native, "", "", 0},
	{"a job by its content", "train.job", "# a job\nname: x\ncommand: hostname\n", Native, "", "", 0},
	{"a job in JSON", "-", `{"name": "x", "command": "hostname"}`, Native, "", "", 0},
	{"an executable job", "job", "#!/usr/bin/env -S cox run\nname: x\ncommand: hostname\n", Native, "", "", 0},
	{"a job whose command has holes", "a.yaml", "command: docker ps --format {{.Names}}\nenv:\n  A: ${HOME}/x\n", Native, "", "", 0},
	{"a job whose script has holes", "a.yaml", "name: x\nscript: |\n  echo ${HOME} {{ x }}\n  {% if a %}\noutput: $HOME/%j.out\n", Native, "", "", 0},
	{"a wrong job: the native form says what is wrong", "a.yaml", "nodess: 2\n", Native, "", "", 0},
	{"a job with a field that conda has", "a.yaml", "name: x\ncommand: hostname\ndependencies: [afterok:1]\n", Native, "", "", 0},
	{"a Windows job", "a.yaml", "\xef\xbb\xbfname: x\r\ncommand: a\r\n", Native, "", "", 0},

	{"a pod", "pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n", Kubernetes, "", "", 2},
	{"a pod by its content", "-", "kind: Pod\napiVersion: v1\n", Kubernetes, "", "", 1},
	{"several documents", "all.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\n---\n# the job\napiVersion: batch/v1\nkind: Job\nspec:\n  kind: x\n---\n", Kubernetes, "", "", 2},
	{"a service", "d.yml", "apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: v1\nkind: Service\n", Kubernetes, "", "", 2},
	{"queues of Kueue", "q.yaml", "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\n---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\n", Kubernetes, "", "", 2},
	{"a volume", "v.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\n", Kubernetes, "", "", 2},
	{"kustomize", "x/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n", Kubernetes, "", "", 2},
	{"a manifest in JSON", "-", "{\n  \"kind\": \"Job\",\n  \"apiVersion\": \"batch/v1\"}\n", Kubernetes, "", "", 1},
	{"a script inside of a manifest", "j.yaml", "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n      - command: [sh, -c]\n        args:\n        - |\n          echo ${HOSTNAME}\n          echo {{ x }}\n", Kubernetes, "", "", 2},

	{"a chart's job", "charts/train/templates/job.yaml", "{{- if .Values.enabled }}\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Release.Name }}\n{{- end }}\n", Template, "a template of Helm of a manifest for Kubernetes (Job)", "helm template charts/train > rendered.yaml", 1},
	{"a quoted hole", "j.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: \"{{ .Values.name }}\"\n", Template, "j.yaml:4:10: this is a template of Helm", "helm template CHART", 4},
	{"Jinja", "ray.yaml.j2", "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata:\n  name: {{ name }}\n", Template, "a template of Jinja", "jinja2 ray.yaml.j2 VALUES.yaml > rendered.yaml", 4},
	{"Jinja with loops", "a.yaml", "name: x\n{% for i in n %}\nnodes: 2\n{% endfor %}\n", Template, "a template of Jinja", "jinja2 a.yaml", 2},
	{"a template of Go", "a.tmpl", "kind: Job\napiVersion: batch/v1\nmetadata:\n  name: {{ .Name }}\n", Template, "a template of Go", "gomplate -f a.tmpl", 4},
	{"Terraform", "d.yaml.tftpl", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n", Template, "a template of Terraform", "templatefile", 4},
	{"variables of the shell", "job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: train\n  namespace: ${NAMESPACE}\n", Template, "job.yaml:5:14: this is a template with variables of the shell", "envsubst < job.yaml > rendered.yaml", 5},
	{"variables in a job", "job.yaml", "name: x\nnodes: ${NODES}\ncommand: a\n", Template, "variables of the shell", "envsubst", 2},
	{"Mustache", "main.sh.mustache", "#!/bin/bash\n#SBATCH -n {{tasks}}\n", Template, "a template of Mustache of a batch script", "the tool that it belongs to, and write the result to rendered.sh", 2},
	{"a template of a batch script", "run.sh.j2", "#!/bin/bash\n#SBATCH --nodes={{ nodes }}\nsrun x\n", Template, "run.sh.j2:2:17: this is a template of Jinja of a batch script", "> rendered.sh", 2},
	{"Jinja in a batch script", "run.sh", "#!/bin/bash\n#SBATCH -N1\n{% if gpus %}\nsrun x\n{% endif %}\n", Template, "Jinja", "", 3},

	{"SkyPilot", "sky.yaml", "name: train\nresources:\n  accelerators: A100:8\nnum_nodes: 2\nsetup: pip install torch\nrun: |\n  torchrun x.py\n", SkyPilot, "a task of SkyPilot", "accelerators: A100:8 is gpus_per_node: A100:8", 0},
	{"dstack", ".dstack.yml", "type: task\nname: train\ncommands:\n  - python train.py\nresources:\n  gpu: 24GB\n", Dstack, "a configuration of dstack", "commands are script", 0},
	{"compose", "docker-compose.yml", "version: \"3\"\nservices:\n  web:\n    image: nginx\n", Compose, "Docker Compose", "docker compose -f docker-compose.yml up", 0},
	{"compose by its content", "stack.yaml", "services:\n  a:\n    build: .\n", Compose, "Docker Compose", "", 0},
	{"values of a chart", "chart/values.yaml", "image:\n  tag: x\nreplicas: 2\n", OtherTool, "the values of a Helm chart", "helm template DIRECTORY -f chart/values.yaml", 0},
	{"a chart", "chart/Chart.yaml", "apiVersion: v2\nname: x\nversion: 0.1.0\n", OtherTool, "the description of a Helm chart", "helm template", 0},
	{"conda", "environment.yml", "name: torch\nchannels: [conda-forge]\ndependencies:\n  - python\n", OtherTool, "an environment of conda", "conda env create -f environment.yml", 0},
	{"a cluster of Ray", "cluster.yaml", "cluster_name: x\nprovider:\n  type: aws\n", OtherTool, "a cluster of Ray", "", 0},
	{"rules of a site", "queues.yaml", "accounts:\n- name: a\nqos: {}\n", Rules, "the rules of a site", "cox apply -f queues.yaml", 0},
	{"a server's configuration", "cox.yaml", "state:\n  dir: /x\nlisten: {}\n", Config, "the configuration of a server", "cox up --config cox.yaml", 0},
	{"a slurm.conf", "slurm.conf", "# lab\nClusterName=lab\nNodeName=n1\n", SlurmConf, "the configuration of a Slurm cluster", "cox import slurm slurm.conf", 0},
	{"GitHub Actions", "ci.yml", "name: CI\non: [push]\njobs:\n  a: {}\n", OtherTool, "GitHub Actions", "batch script", 0},

	{"Python", "train.py", "import torch\n\nprint(torch.cuda.device_count())\n", Python, "train.py: this is a program in Python, not a batch script, a manifest or a job in the native form", "cox submit -- python3 train.py", 0},
	{"Python by its content", "-", "# train\nimport os\nfrom torch import nn\n", Python, "-:2: this is a program in Python", "python3 FILE.py", 2},
	{"Python with a title", "train", "\"\"\"Trains.\"\"\"\nimport os\n\ndef main():\n    pass\n", Python, "Python", "", 1},
	{"R", "fit.R", "library(x)\nfit(1)\n", Python, "a program in R", "Rscript fit.R", 0},
	{"a notebook", "train.ipynb", "{\n \"cells\": [],\n \"nbformat\": 4\n}\n", Notebook, "a Jupyter notebook", "cox submit -- jupyter execute train.ipynb", 0},
	{"a notebook by its content", "-", "{\"cells\": [], \"metadata\": {}, \"nbformat\": 4}", Notebook, "a Jupyter notebook", "NOTEBOOK.ipynb", 0},
	{"a Dockerfile", "Dockerfile", "# syntax=docker/dockerfile:1\nFROM nvcr.io/nvidia/pytorch:24.01-py3\nRUN pip install x\n", Dockerfile, "a Dockerfile", "image: NAME", 2},
	{"a Dockerfile by its content", "build", "ARG TAG=1\nFROM ubuntu:$TAG\n", Dockerfile, "a Dockerfile", "docker build -t NAME -f build .", 1},
	{"Apptainer", "x.def", "Bootstrap: docker\nFrom: ubuntu\n", Dockerfile, "a definition file of Apptainer", "apptainer build NAME.sif x.def", 1},
	{"documentation", "raxml.md", "# RAxML\n\n```bash\n#SBATCH -N1\n```\n", Document, "a page of documentation", "copy the script", 0},
	{"documentation with fields", "0001-x.md", "Status: built\n\n`code`\n", Document, "a page of documentation", "", 0},
	{"a web page", "job.sh", "\n<!DOCTYPE html>\n<html lang=en><title>github</title>", HTML, "a web page", "behind Raw", 0},
	{"a web page of another place", "job.sh", "<html><body>404", HTML, "a web page", "download the file itself", 0},
	{"XML", "a.xml", "<?xml version=\"1.0\"?>\n<a/>", HTML, "XML", "batch script", 0},

	{"a program", "a.out", "\x7fELF\x02\x01\x01\x00", Binary, "a program", "cox run -- ./a.out", 0},
	{"an archive", "job.tar.gz", "\x1f\x8b\x08\x00", Binary, "a gzip archive", "tar -xzf", 0},
	{"a binary file", "model.pt", "#!/bin/sh\nabc\x00def", Binary, "a binary file", "", 2},
	{"a tar archive", "job.tar", strings.Repeat("a", 200) + strings.Repeat("\x00", 57) + "ustar\x0000", Binary, "a tar archive", "tar -xf job.tar", 0},
	{"UTF-16", "job.sh", "\xff\xfe#\x00!\x00", Binary, "text in UTF-16", "iconv -f UTF-16 -t UTF-8 job.sh", 0},
	{"nothing", "job.sh", "", Empty, "job.sh: this is an empty file", "#!/bin/sh", 0},
	{"white space", "job.yaml", " \n\t\n", Empty, "an empty file", "", 0},
}

func TestRecognise(t *testing.T) {
	seen := map[Kind]bool{}
	for _, c := range samples {
		in := Recognise(c.name, []byte(c.text))
		seen[in.Kind] = true
		if in.Kind != c.kind || in.Line != c.line {
			t.Errorf("%s: %s at line %d, want %s at line %d", c.about, in.Kind, in.Line, c.kind, c.line)
			continue
		}
		err := in.Refusal(c.name, "")
		if in.Readable() {
			if err != nil || in.Remedy != "" {
				t.Errorf("%s: %v", c.about, err)
			}
			continue
		}
		var e *spec.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || e.Remedy == "" || !strings.Contains(e.Remedy, c.remedy) {
			t.Errorf("%s: %v", c.about, err)
		}
		if e.Text != "" && (e.Col < 1 || e.Len < 1 || e.Col-1+e.Len > len(e.Text)) {
			t.Errorf("%s: %d bytes from column %d of %q", c.about, e.Len, e.Col, e.Text)
		}
	}
	for _, k := range []Kind{Batch, Native, Kubernetes, Template, SkyPilot, Dstack, Compose, OtherTool, Rules, Config, SlurmConf, Python, Notebook, Dockerfile, Document, HTML, Binary, Empty} {
		if !seen[k] {
			t.Errorf("no sample is recognised as %s", k)
		}
	}
}

// TestRecogniseKeepsTheText: the bytes stay as they are, and a second look sees the same.
func TestRecogniseKeepsTheText(t *testing.T) {
	for _, c := range samples {
		data := []byte(c.text)
		first := Recognise(c.name, data)
		if again := Recognise(c.name, data); string(data) != c.text || again.What != first.What || again.Line != first.Line || again.Remedy != first.Remedy {
			t.Errorf("%s: %+v, then %+v", c.about, first, again)
		}
	}
}

// BenchmarkRecognise is 1 MiB of what costs most.
func BenchmarkRecognise(b *testing.B) {
	for _, c := range []struct{ name, first, unit string }{
		{"a.sh", "#!/bin/sh\n", "#SBATCH -N1 {{\n"},
		{"a.yaml", "", "key: {x\n"},
		{"a.yaml", "", "- a: $A {\n"},
		{"a.yaml", "", "kind: x\napiVersion: y\n---\n"},
		{"a", "", "a: {{ {% $"},
		{"a.json", "", "{\"a\":"},
		{"a.txt", "", "def a\n"},
		{"a.sh", "#!/bin/sh\n", "srun hostname\n"},
	} {
		data := []byte(c.first + strings.Repeat(c.unit, 1<<20/len(c.unit)))
		b.Run(strings.TrimSpace(c.unit), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				Recognise(c.name, data)
			}
		})
	}
}

func TestFolderRemedy(t *testing.T) {
	for want, names := range map[string][]string{
		"helm template x > rendered.yaml":               {"Chart.yaml", "values.yaml"},
		"kubectl kustomize x":                           {"kustomization.yaml"},
		"name one of its files: x/a.sbatch, x/b.yaml":   {"a.sbatch", "b.yaml", "c.txt"},
		"name one of its files: x/1.sh, x/2.sh, x/3.sh": {"1.sh", "2.sh", "3.sh", "4.sh"},
		"name a batch script or a job in YAML":          nil,
	} {
		if got := FolderRemedy("x", names); !strings.Contains(got, want) {
			t.Errorf("%v: %s", names, got)
		}
	}
}

func FuzzRecognise(f *testing.F) {
	for _, c := range samples {
		f.Add(c.name, []byte(c.text))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		in := Recognise(name, data)
		if err := in.Refusal(name, ""); (err == nil) != in.Readable() || err != nil && (in.What == "" || in.Remedy == "") {
			t.Errorf("%s %q: %+v", name, data, in)
		}
		if in.Text != "" && (in.Col < 1 || in.Col-1+in.Len > len(in.Text)) {
			t.Errorf("%s %q: %d bytes from column %d of %q", name, data, in.Len, in.Col, in.Text)
		}
	})
}
