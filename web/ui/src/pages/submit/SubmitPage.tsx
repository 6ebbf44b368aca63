import { useMutation } from "@tanstack/react-query";
import { useState, type ChangeEvent } from "react";
import { post } from "../../api/client";
import type { Submitted } from "../../api/types";
import { Button } from "../../components/Button";
import { Command } from "../../components/Command";
import { Page } from "../../components/Page";
import { ProblemView } from "../../components/Problem";
import { addresses } from "../../router/addresses";
import { navigate } from "../../router/location";
import { DryRun } from "./DryRun";
import { formOf, formLabels, type Form } from "./formOf";
import { useDraft } from "./useDraft";
import "./SubmitPage.css";

/** Submits a text as cox submit does. What it would do is shown first. */
export default function SubmitPage() {
  const [draft, setDraft] = useDraft();
  const [asked, setAsked] = useState<Form>();
  const form = asked ?? formOf(draft.file, draft.text);
  const body = (testOnly: boolean) => ({ form, file: draft.file || "console", text: draft.text, dir: draft.dir, test_only: testOnly });
  const check = useMutation({ mutationFn: () => post("/v1/jobs", { body: body(true) }) });
  const submit = useMutation({ mutationFn: () => post("/v1/jobs", { body: body(false) }), onSuccess: open });
  const change = (next: Partial<typeof draft>) => {
    setDraft(next);
    check.reset();
    submit.reset();
  };
  const load = async (event: ChangeEvent<HTMLInputElement>) => {
    const file = event.target.files?.[0];
    if (file) change({ file: file.name, text: await file.text() });
  };
  const ready = draft.text.trim() !== "" && draft.dir.startsWith("/");
  return (
    <Page title="Submit" aside={<Command text={`cox submit ${draft.file || "job.sbatch"}`} />}>
      <div className="submit">
        <div className="submit-fields">
          <label>Working directory on the server
            <input value={draft.dir} placeholder="/home/anna/project" onChange={(event) => change({ dir: event.target.value })} spellCheck={false} />
          </label>
          <label>Form
            <select value={form} onChange={(event) => { setAsked(event.target.value as Form); check.reset(); }}>
              {Object.entries(formLabels).map(([each, label]) => <option key={each} value={each}>{label}</option>)}
            </select>
          </label>
          <label>File
            <input type="file" onChange={(event) => void load(event)} />
          </label>
        </div>
        <label className="submit-text">
          <span className="hidden-text">Script or specification</span>
          <textarea value={draft.text} rows={18} spellCheck={false} placeholder={"#!/bin/bash\n#SBATCH --nodes=2 --gpus-per-node=8 --time=4:00:00\n\nsrun python train.py"} onChange={(event) => change({ text: event.target.value })} />
        </label>
        <div className="submit-buttons">
          <Button look={check.data ? "plain" : "primary"} isDisabled={!ready || check.isPending} onPress={() => check.mutate()}>Check</Button>
          <Button look="primary" isDisabled={!check.data || submit.isPending} onPress={() => submit.mutate()}>Submit</Button>
          {!ready && <span className="faint">{draft.text.trim() === "" ? "Write or choose a script." : "The working directory is an absolute path on the server."}</span>}
          {ready && !check.data && <span className="faint">Check says what it would do; then it can be submitted.</span>}
        </div>
      </div>
      {check.error && <ProblemView error={check.error} />}
      {submit.error && <ProblemView error={submit.error} />}
      {check.data && <DryRun result={check.data} />}
    </Page>
  );
}

function open(done: Submitted) {
  if (done.id) navigate(addresses.job(String(done.id)));
  else if (done.service) navigate(addresses.service(done.service.name));
  else navigate(addresses.queue);
}
