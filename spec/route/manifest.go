package route

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
)

// ManifestFacts finds the facts about the work of a manifest. at is its document; kind is that of Kubernetes.
func ManifestFacts(at Evidence, kind string, s *job.Spec) *Facts {
	f := &Facts{imaged: true}
	say := func(key Key, value int, says string, args ...any) {
		e := at
		e.Says = fmt.Sprintf(says, args...)
		f.Set(key, value, File, e)
	}
	say(Containers, 1, "a %s of Kubernetes", kind)
	pods := 0
	for _, g := range s.Groups {
		pods += g.Tasks.Least()
	}
	switch {
	case strings.HasPrefix(kind, "Ray"):
		say(PythonPipeline, 1, "a %s", kind)
	case pods > 1 && s.Array == nil:
		say(TightlyCoupled, 1, "%d pods start together", pods)
	}
	if s.Serve != nil {
		say(LongLivedService, 1, "a %s is kept alive", kind)
	}
	return f
}
