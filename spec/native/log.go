package native

import (
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// maxLogKeep is how many rotated files can be kept at most.
const maxLogKeep = 100

var logFields = []field[job.LogRotation]{
	{name: "size", form: aSize, doc: "from which an output file is rotated; 64M if not given", also: []string{"max_size"}, set: func(p *parser, l *job.LogRotation, v value) { l.Size = int64(p.parseSize(v)) }},
	{name: "keep", form: aNumber(1, maxLogKeep), doc: "rotated files that are kept; 4 if not given", also: []string{"max_files"}, set: func(p *parser, l *job.LogRotation, v value) { l.Keep = int(p.parseNumber(v, 1, maxLogKeep)) }},
}

func setLog(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		p.failValue(v, "write log: {size: 64M, keep: 4}", "is %s where fields are expected", v.Kind)
		return
	}
	decodeFields(p, v.path, v.Node, logFields, &d.service.Job.Serve.Log)
}
