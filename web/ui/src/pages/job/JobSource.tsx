import { useScript } from "../../api/queries";
import type { Job } from "../../api/types";
import { Async } from "../../components/Async";
import { Card } from "../../components/Card";
import { Command } from "../../components/Command";
import { Facts, type Fact } from "../../components/Facts";
import { bytes } from "../../format/number";
import "./JobSource.css";

/** Where the work came from: the script as it was submitted, the working copy, the image, the files. */
export function JobSource({ job }: { job: Job }) {
  const { spec } = job;
  const script = useScript(job.name, Boolean(spec.program.script_hash));
  const git = spec.provenance?.git;
  const facts: Fact[] = [
    ["runs", [spec.program.script_name ?? spec.source.file, ...(spec.program.args ?? [])].filter(Boolean).join(" ")],
    ["in", spec.upload ? `a copy of ${spec.work_dir}, which came with the job` : spec.work_dir],
    ["from", spec.source.host && `host ${spec.source.host}`],
    ["form", spec.source.form],
    ["image", spec.image],
    ["digest", spec.provenance?.image],
    ["git", git && `${git.commit.slice(0, 12)}${git.branch ? ` on ${git.branch}` : ""}${git.dirty ? ", with changes that are not committed" : ""}`],
    ["remote", git?.remote],
    ["licenses", spec.licenses],
    ["stdout", spec.output.stdout],
    ["stderr", spec.output.stderr],
    ["script", spec.program.script_hash && <code>sha256 {spec.program.script_hash}</code>],
    ...(spec.provenance?.notes ?? []).map((note, i): Fact => [i === 0 ? "notes" : " ".repeat(i), note]),
  ];
  return (
    <>
      <Card title="Where it came from"><Facts facts={facts} /></Card>
      {(spec.provenance?.files?.length ?? 0) > 0 && (
        <Card title="Files at submission">
          <div className="scroll-x">
            <table className="plain">
              <tbody>
                {spec.provenance?.files?.map((file) => (
                  <tr key={file.name}><td>{file.name}</td><td className="number">{bytes(file.size)}</td><td><code>{file.sha256}</code></td></tr>
                ))}
              </tbody>
            </table>
          </div>
        </Card>
      )}
      {spec.program.script_hash && (
        <Card title="Script" aside={<Command text={`cox show ${job.name} --script`} />}>
          <Async query={script}>{(text) => <pre className="job-script" tabIndex={0}>{text}</pre>}</Async>
        </Card>
      )}
    </>
  );
}
