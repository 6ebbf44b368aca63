package jobs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store/upload"
)

type uploadPath struct {
	Digest string `path:"digest" doc:"SHA-256 of the archive, 64 hexadecimal digits"`
}

type uploadsInput struct {
	Digest string `query:"digest" doc:"of an archive that is asked for"`
}

func (s *Service) registerUploads() {
	addRoute(s, transport.Route{
		Method: http.MethodGet, Path: "/v1/uploads", Verb: auth.Submit, ID: "uploads", Tag: "jobs",
		Summary: "Limits of the server for uploaded directories", About: "The caller's own. With a digest it says whether that archive is there, and keeps it for a while if it is.",
	}, func(c *call, in *uploadsInput) (*api.Uploads, error) { return s.uploadState(c, in.Digest) })
	addStreamRoute(s, transport.Route{
		Method: http.MethodPut, Path: "/v1/uploads/{digest}", Verb: auth.Submit, ID: "upload", Tag: "jobs", Status: http.StatusNoContent,
		Summary: "Upload a directory for a job",
		About:   "The body is its archive (application/gzip: a tar in gzip), and Content-Length its size. It is kept for its sender alone, until no job needs it. One that is there already is not read.",
	}, func(c *call, in *uploadPath) error { return s.takeUpload(c, in.Digest) })
}

func (s *Service) uploadState(c *call, digest string) (*api.Uploads, error) {
	if err := cmp.Or(s.intake.TakesUploads(), s.startsAs(c.ID)); err != nil {
		return nil, err
	}
	out := &api.Uploads{Used: s.cfg.Uploads.Used(c.ID.UID)}
	out.Most, out.Room = s.cfg.Uploads.Bounds()
	if digest == "" {
		return out, nil
	}
	_, err := s.cfg.Uploads.Touch(c.ID.UID, digest)
	if out.There = err == nil; fault.KindOf(err) != fault.NotFound && err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Service) takeUpload(c *call, digest string) error {
	if err := cmp.Or(s.intake.TakesUploads(), s.startsAs(c.ID)); err != nil {
		return err
	}
	if c.R.ContentLength < 0 {
		return fault.New(fault.Invalid, "the size of the archive is not said").Advise("send Content-Length")
	}
	body := &paced{from: c.R.Body, ctl: http.NewResponseController(c.W.ResponseWriter), most: 3 * c.s.cfg.Patience}
	if err := s.cfg.Uploads.Put(c.ID.UID, digest, c.R.ContentLength, body, s.neededUploads); err != nil {
		c.W.Header().Set("Connection", "close") // what was not read is not waited for
		if body.broke && fault.KindOf(err) == fault.Internal {
			return fault.New(fault.Invalid, "the archive did not come: %w", err).Advise("send it again")
		}
		return err
	}
	_ = body.ctl.SetReadDeadline(time.Time{})
	c.W.WriteHeader(http.StatusNoContent)
	return nil
}

// paced is a body of which something has to come in every so often.
type paced struct {
	from io.Reader
	ctl  *http.ResponseController
	most time.Duration

	broke bool // what was read last was an error
}

// Read waits so long and no longer.
func (p *paced) Read(b []byte) (int, error) {
	_ = p.ctl.SetReadDeadline(time.Now().Add(p.most)) // a recorder of a test has none
	n, err := p.from.Read(b)
	p.broke = err != nil && err != io.EOF
	return n, err
}

// neededUploads are the directories that jobs need which have not ended.
func (s *Service) neededUploads() map[upload.Name]bool {
	out := map[upload.Name]bool{}
	s.cfg.Plane.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		if u := v.Job.Spec.Upload; u != nil {
			out[upload.Name{UID: v.Job.Spec.Owner.UID, Digest: u.Digest}] = true
		}
		return true
	})
	return out
}

// SweepUploads removes the archives that no job needs any more, and the directories of jobs that ended
// some time ago, now and every hour, until ctx ends. Each minute it sees whether these leave room.
func (s *Service) SweepUploads(ctx context.Context) {
	hour, minute := time.NewTicker(time.Hour), time.NewTicker(time.Minute)
	defer hour.Stop()
	defer minute.Stop()
	if s.cfg.Uploads == nil {
		return
	}
	for whole := true; ; {
		err := s.makeTreeRoom(ctx)
		if whole {
			err = errors.Join(err, s.cfg.Uploads.Sweep(s.neededUploads), s.sweepTrees(ctx))
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("directories that came with jobs", "error", err)
		}
		select {
		case <-hour.C:
			whole = true
		case <-minute.C:
			whole = false
		case <-ctx.Done():
			return
		}
	}
}
