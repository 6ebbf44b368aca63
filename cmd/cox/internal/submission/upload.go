package submission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// uploadDirectory sends the directory of a submission, unless the server has it, or nothing of the job
// is kept.
func uploadDirectory(a *cli.App, ctx context.Context, c *client.Client, f *submitFlags, req *api.Submit) error {
	may, err := c.Uploads(ctx, "")
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "cox-upload-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	sum := sha256.New()
	p, err := upload.Pack(ctx, req.Dir, io.MultiWriter(file, sum), may.Most)
	if err != nil {
		return fault.New(fault.KindOf(err), "--upload: %w", err).Advise("%s", fault.Remedy(err))
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	req.Upload = &job.Upload{Digest: hex.EncodeToString(sum.Sum(nil)), Size: size, Dir: req.Dir}
	if p.Left > 0 {
		fmt.Fprintf(a.Err, "%s of %s left out: sockets, pipes and devices have no content\n", printer.Count(p.Left, "file"), req.Dir)
	}
	if f.testOnly {
		return nil
	}
	have, err := c.Uploads(ctx, req.Upload.Digest)
	if err != nil || have.There {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	stop := a.ShowProgress(int(size), "sending %s of %s", printer.Bytes(size), printer.Count(p.Files, "file"))
	defer stop()
	return c.Upload(ctx, req.Upload.Digest, size, file)
}
