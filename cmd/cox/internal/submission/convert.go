package submission

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/spec"
)

// convertFlags are the flags of cox convert.
type convertFlags struct {
	from, to, output, work string
	options                []string
	strict                 bool
}

func convertCommand(a *cli.App) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert FILE --to native|sbatch|manifest|json [ARG…]",
		Short: "Convert a job from one form to another, and report what has no counterpart",
		Long: `Reads an sbatch script, a Kubernetes manifest or the native form and writes another
form. Standard error
lists, line by line, what the other form cannot say. --to json is stable, for
programs: the job as it was understood, and every warning with file, line and
option. It asks no server.`,
		Example: `  cox convert train.sbatch --to native > train.yaml
  cox convert train.yaml --to sbatch
  cox convert train.sbatch --to manifest > job.yaml
  cox convert train.sbatch --to json | jq .warnings
  cox convert all.yaml --work Job/train --to sbatch
  cox convert - --from sbatch --to native < train.sbatch`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.New(fault.Invalid, "cox convert needs a file").Advise("for example: cox convert train.sbatch --to native")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := convertText(a, &f, args); err != nil {
				return cli.NotDone(err, "not converted")
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.from, "from", "", "form of FILE: sbatch, native or manifest (default: detected)")
	fl.StringVar(&f.to, "to", "", "the form to write: native, sbatch, manifest or json")
	fl.StringVar(&f.work, "work", "", "`KIND/NAME` of what is converted, of a manifest in which several things run")
	fl.StringVar(&f.output, "output", "", "write to this file (default: standard output)")
	fl.StringArrayVarP(&f.options, "sbatch", "s", nil, "option of sbatch that overrides the file, such as -s --time=10")
	fl.BoolVar(&f.strict, "strict", false, "treat warnings as errors")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{"native", "sbatch", "manifest", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions([]string{"sbatch", "native", "manifest"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func convertText(a *cli.App, f *convertFlags, args []string) error {
	write, ok := writers[f.to]
	if !ok {
		if f.to == "" {
			return fault.New(fault.Invalid, "--to is required: native, sbatch, manifest or json").Advise("for example: cox convert %s --to native", args[0])
		}
		return fault.New(fault.Invalid, "--to=%s: there is no such form", f.to).Advise("forms are native, sbatch, manifest and json")
	}
	data, err := readScript(args[0], "convert", a.In)
	if err != nil {
		return err
	}
	from, err := formOf(f.from, args[0], data)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	of := intake.Text{Form: from, Name: args[0], Data: data, Work: f.work}
	if err := chooseOne(&of, f.to); err != nil {
		return err
	}
	// The environment is left out: it belongs to a submission, not to the file.
	text, err := intake.Read(of,
		intake.Options{Owner: cli.Caller(), Args: f.options, ScriptArgs: args[1:], Dir: dir, Strict: f.strict, ReadFile: os.ReadFile})
	if err != nil {
		return err
	}
	if text.Service != nil {
		return fault.New(fault.Unsupported, "%s: a service is converted to no other form: it has no counterpart in sbatch", args[0]).
			Advise("submit it as it is: cox submit %s", args[0])
	}
	out, more, err := write(text)
	if err != nil {
		return err
	}
	out, lost := convertSchedule(text, f.to, out)
	warnings := append(more, lost...)
	if f.to != "json" { // which has them inside
		warnings = append(text.Warnings, warnings...)
	}
	fmt.Fprint(a.Err, printer.Warnings(a.Page(a.Err), apiWarnings(warnings)))
	if f.output != "" {
		if err := os.WriteFile(f.output, out, 0o666); err != nil {
			return fault.New(fault.KindOf(err), "write %s: %w", f.output, err)
		}
		return nil
	}
	_, err = a.Out.Write(out)
	return err
}

// chooseOne refuses a manifest in which several things run, where it does not say which one is meant.
func chooseOne(t *intake.Text, to string) error {
	if t.Work != "" && t.Form != api.FormManifest {
		return fault.New(fault.Invalid, "--work %s is of manifests, and %s is none", t.Work, t.Name).Advise("leave --work out")
	}
	works, err := intake.Works(*t)
	if err != nil || t.Work != "" || len(works) < 2 {
		return err
	}
	return fault.New(fault.Invalid, "%s has %d things to run: %s", t.Name, len(works), strings.Join(works, ", ")).
		Advise("convert one after the other: cox convert %s --work %s --to %s", t.Name, works[0], to)
}

// writers make a text of a job, for --to; the warnings say what it could not hold.
var writers = map[string]func(*intake.Request) ([]byte, []spec.Warning, error){
	"json":         writeJSON,
	api.FormNative: writeNative,
	api.FormSbatch: writeSbatch,

	api.FormManifest: writeManifest,
}
