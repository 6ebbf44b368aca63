package sbatch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/coxswain-sched/coxswain/agent/ownlimit"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/fastclient"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec"
	parse "github.com/coxswain-sched/coxswain/spec/sbatch"
)

const usageText = `Usage: sbatch [OPTIONS...] executable [args...]
The options are those of Slurm's sbatch: docs/reference/sbatch.md says of each what it does here.
      --parsable      print the job's number alone
      --test-only     say when it could start, submit nothing
  -W, --wait          stay until the job has ended, and end with its exit code
  -Q, --quiet         print errors alone
      --wrap=COMMAND  a command line in the place of a script
`

// exitUsage is sbatch's exit code for a command line that it cannot read.
const exitUsage = 255

// Main is sbatch with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	c := slurmcmd.Begin("sbatch", stdio)
	if err := run(c, args); err != nil {
		printError(c, err)
	}
	return c.Exit()
}

func run(c *slurmcmd.Command, args []string) error {
	line, err := parse.Command(args, c.Environ())
	switch {
	case err != nil:
		return err
	case line.Help, line.Usage:
		c.Out.WriteString(usageText)
		return nil
	case line.Version:
		c.Out.WriteString(slurmcmd.Version + "\n")
		return nil
	}
	if line.Clusters != nil {
		c.ChooseClusters(strings.Join(line.Clusters, ","))
	}
	cluster, pools, err := c.CheckPools()
	if err != nil {
		return err
	}
	req, err := submitRequest(c, &line)
	if err != nil {
		return err
	}
	req.Pool = strings.Join(pools, ",")
	client, err := c.Client()
	if err != nil {
		return err
	}
	v, err := client.JSON("POST", "/v1/jobs", fastclient.Submit(req))
	if err != nil {
		return err
	}
	if len(pools) > 0 {
		cluster = cmp.Or(v.Get("pool").Text(), pools[0])
	}
	return printAnswer(c, client, &line, v, cluster)
}

// submitRequest makes of the command line what is asked of the server.
func submitRequest(c *slurmcmd.Command, line *parse.CommandLine) (*api.Submit, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("getcwd failed: %w", err)
	}
	host, _ := os.Hostname()
	mask := uint32(syscall.Umask(0o022))
	syscall.Umask(int(mask))
	req := &api.Submit{
		Form: api.FormSbatch, File: "-", Args: line.Options, Environ: c.Environ(), Dir: dir, Host: host, Umask: &mask, Limits: ownlimit.Texts(), TestOnly: line.TestOnly,
	}
	switch {
	case line.Wrapped:
		src := parse.Wrap(line.Wrap)
		req.File, req.Text = src.Name, string(src.Data)
	case len(line.Script) == 0:
		text, err := io.ReadAll(io.LimitReader(c.In, parse.MaxScript+1))
		if err != nil {
			return nil, err
		}
		req.Text = string(text)
	default:
		text, err := readScript(line.Script[0])
		if err != nil {
			return nil, err
		}
		req.File, req.Text, req.ScriptArgs = line.Script[0], text, line.Script[1:]
	}
	if err := checkScript(req.Text); err != nil {
		return nil, err
	}
	req.Files = namedFiles(req)
	return req, nil
}

// namedFiles reads the files that options name (--nodefile, --export-file), which the
// server does not open. Only a request that may name one is read for it; what is wrong
// with it the server says.
func namedFiles(req *api.Submit) map[string]string {
	all := strings.Join(req.Args, "\n") + "\n" + req.Text
	if !strings.Contains(all, "-F") && !strings.Contains(all, "--node") && !strings.Contains(all, "--export-f") {
		return nil
	}
	files := map[string]string{}
	_, _ = parse.ParseAll(spec.Source{Name: req.File, Data: []byte(req.Text)}, parse.Options{
		Args: req.Args, Environ: req.Environ, Dir: req.Dir,
		ReadFile: func(name string) ([]byte, error) {
			data, err := os.ReadFile(name)
			if err == nil {
				files[name] = string(data)
			}
			return data, err
		},
	})
	return files
}

// readScript reads a script as sbatch finds it: a bare name also along PATH.
func readScript(name string) (string, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !strings.Contains(name, "/") {
		for _, dir := range strings.Split(os.Getenv("PATH"), ":") {
			if t, err := os.ReadFile(dir + "/" + name); err == nil && dir != "" {
				return string(t), nil
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", slurmcmd.Textf("Unable to open file %s", name)
	case err != nil:
		return "", slurmcmd.Textf("Unable to open file %s: %v", name, err)
	}
	return string(text), nil
}

// checkScript says in sbatch's words what is no batch script at all.
func checkScript(text string) error {
	switch {
	case text == "":
		return slurmcmd.Textf("Batch script is empty!")
	case strings.TrimSpace(text) == "":
		return slurmcmd.Textf("Batch script contains only whitespace!")
	case !strings.HasPrefix(text, "#!"):
		return slurmcmd.Textf("This does not look like a batch script.  The first\n" +
			"sbatch: error: line must start with #! followed by the path to an interpreter.\n" +
			"sbatch: error: For instance: #!/bin/sh")
	case strings.IndexByte(text, 0) >= 0:
		return slurmcmd.Textf("The SLURM controller does not allow scripts that\nsbatch: error: contain a NULL character '\\0'.")
	case strings.Contains(text, "\r\n"):
		return slurmcmd.Textf("Batch script contains DOS line breaks (\\r\\n)\nsbatch: error: instead of expected UNIX line breaks (\\n).")
	}
	return nil
}

// printAnswer prints the answer to a submission, and waits if that was asked for. The
// cluster's name stands behind the job's number where --clusters was given.
func printAnswer(c *slurmcmd.Command, client *fastclient.Client, line *parse.CommandLine, v fastclient.Value, cluster string) error {
	quiet := line.Quiet || v.Get("quiet").Bool()
	if !quiet {
		for _, w := range v.Get("warnings").Items() {
			if cluster != "" && w.Get("option").Text() == "--clusters" && w.Get("line").Int() == 0 {
				continue // it was checked
			}
			c.SayWarning(w)
		}
	}
	if line.TestOnly || v.Get("test_only").Bool() {
		c.PrintEstimate(v.Get("estimate"))
		return nil
	}
	id := v.Get("id").Text()
	switch {
	case line.Parsable || v.Get("parsable").Bool():
		fmt.Fprintf(c.Out, "%s%s\n", id, joinIf(";", cluster))
	case !quiet:
		fmt.Fprintf(c.Out, "Submitted batch job %s%s\n", id, joinIf(" on cluster ", cluster))
	}
	if line.Wait || v.Get("wait").Bool() {
		_ = c.Out.Flush()
		ended, err := slurmcmd.Wait(client, id)
		if err != nil {
			return err
		}
		c.Code = slurmcmd.ExitCode(ended)
	}
	return nil
}

// joinIf is the cluster's name behind a separator, or nothing without a name.
func joinIf(separator, cluster string) string {
	if cluster == "" {
		return ""
	}
	return separator + cluster
}

// printError prints an error in sbatch's words.
func printError(c *slurmcmd.Command, err error) {
	var e *api.Error
	var local *spec.Error
	switch {
	case errors.As(err, &local):
		c.Fail(errors.New(local.Message))
		c.Code = exitUsage
	case errors.As(err, &e) && len(e.Reasons) > 0 && len(e.Errors) > 0: // it was read, and cannot run
		for i := range e.Errors {
			p := &e.Errors[i]
			c.Fail(fault.New(e.FaultKind(), "Batch job submission failed: %s%s%s", slurmcmd.SlurmSentence(e), slurmcmd.Place(p.File, p.Line), p.Message).Advise("%s", p.Remedy))
		}
	case errors.As(err, &e) && len(e.Errors) > 0:
		c.Fail(err)
		if e.Errors[0].File == "command line" {
			c.Code = exitUsage
		}
	case errors.As(err, &e):
		var text bytes.Buffer
		fmt.Fprintf(&text, "Batch job submission failed: %s%s", slurmcmd.SlurmSentence(e), e.Detail)
		c.Fail(fault.New(e.FaultKind(), "%s", text.String()).Advise("%s", e.Remedy))
	default:
		c.Fail(err)
	}
}
