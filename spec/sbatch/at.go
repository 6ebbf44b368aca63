package sbatch

import "github.com/coxswain-sched/coxswain/spec"

// At is an error about the first of the options that is given, where it stands, for what
// turns out about a job when its text has been read. The message completes a sentence that
// begins with the option, after a colon. If none of them is given, or components of a
// heterogeneous job give it in several places, it is about the text as a whole.
func At(src spec.Source, opts Options, message, remedy string, options ...string) *spec.Error {
	whole := &spec.Error{File: src.Name, Message: message, Remedy: remedy}
	script, err := Read(src)
	if err != nil {
		return whole
	}
	p := &parser{opts: opts, script: script}
	command, _ := fromArgs(opts.Args)
	env, _ := fromEnvironment(opts.Environ)
	all := p.layerSettings(script.Components, env, command)
	for _, name := range options {
		var found *Directive
		for _, set := range all {
			switch d, ok := set.get(name); {
			case !ok:
			case found != nil && found != d:
				return whole
			default:
				found = d
			}
		}
		if found != nil {
			return found.Blame(message, remedy)
		}
	}
	return whole
}
