"""Write the fixtures of the readers: one small world of comparisons, in the file layout of each tool.

Run as ``python tests/data/readers/make.py``. Every file follows the layout its tool writes; names and numbers
are made up. ``plain/all.csv`` (all pairs) and ``plain/models.csv`` (first instance of an identity against the other
instances of everybody) are what the other files must read as.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PEOPLE = ("Ada_Byron", "Grace_Murray", "Emmy_Noether", "Sofia_Kovalevskaya", "Mary_Somerville")
COUNTS = (3, 2, 4, 2, 3)


def put(name: str, lines: list[str]) -> None:
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> None:
    rng = np.random.default_rng(20)
    who = np.repeat(np.arange(len(PEOPLE)), COUNTS)
    which = np.concatenate([np.arange(n) for n in COUNTS])
    centre = rng.standard_normal((len(PEOPLE), 4))
    vectors = np.round(centre[who] + 0.5 * rng.standard_normal((who.size, 4)), 4)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = list(itertools.combinations(range(who.size), 2))
    models = [(i, j) for i in range(who.size) if which[i] == 0 for j in range(who.size) if which[j] > 0]
    score = {(i, j): f"{unit[i] @ unit[j]:.6f}" for i, j in itertools.product(range(who.size), repeat=2)}
    same = {(i, j): who[i] == who[j] for i, j in score}
    shuffled = [pairs[k] for k in rng.permutation(len(pairs))]

    for name, chosen in (("plain/all.csv", pairs), ("plain/models.csv", models)):
        rows = [f"{PEOPLE[who[i]]},{which[i]},{PEOPLE[who[j]]},{which[j]},{score[i, j]}" for i, j in chosen]
        put(name, ["id_a,instance_a,id_b,instance_b,score", *rows])

    vox = [f"id{10270 + who[i]}/x6uYqmx31k{who[i]}/{which[i] + 1:05d}.wav" for i in range(who.size)]
    put("voxceleb/veri_test.txt", [f"{int(same[i, j])} {vox[i]} {vox[j]}" for i, j in pairs])
    put("voxceleb/scores.txt", [f"{score[i, j]} {vox[i]} {vox[j]}" for i, j in shuffled])
    put("voxceleb/scores_in_order.txt", [score[p] for p in pairs])

    utt = [f"spk{who[i]}-rec{which[i]}" for i in range(who.size)]
    word = {True: "target", False: "nontarget"}
    put("kaldi/trials", [f"{utt[i]} {utt[j]} {word[bool(same[i, j])]}" for i, j in pairs])
    put("kaldi/scores", [f"{utt[i]} {utt[j]} {score[i, j]}" for i, j in shuffled])
    put("kaldi/utt2spk", [f"{utt[i]} spk{who[i]}" for i in range(who.size)])
    put("kaldi/wespeaker.score", [f"{utt[i]} {utt[j]} {score[i, j]} {word[bool(same[i, j])]}" for i, j in pairs])

    head = "modelid\tsegmentid\tside\ttargettype\tnum_enroll_segs\tgender"
    key = [f"{1001 + who[i]}\tseg{j:03d}.sph\ta\t{word[bool(same[i, j])]}\t1\tfemale" for i, j in models]
    put("sre/trial_key.tsv", [head, *key])
    put(
        "sre/submission.tsv",
        [
            "modelid\tsegmentid\tside\tLLR",
            *(f"{1001 + who[i]}\tseg{j:03d}.sph\ta\t{score[i, j]}" for i, j in reversed(models)),
        ],
    )
    put(
        "sre/segment_key.tsv",
        [
            "segmentid\tsubjectid\tgender",
            *(f"seg{j:03d}.sph\t{500 + who[j]}\tfemale" for j in range(who.size) if which[j]),
        ],
    )
    put(
        "sre/NIST_SRE08_short2-short3.trial.key",
        [
            "modelid,segid,channel,target,condition",
            *(f"{1001 + who[i]},seg{j:03d},a,{word[bool(same[i, j])]},1" for i, j in models),
        ],
    )
    put(
        "sre/NIST_SRE08_short2.model.key",
        [
            "modelid,gender,segid:channel,pin",
            *(f"{1001 + who[i]},f,seg{i:03d}:a,{500 + who[i]}" for i in range(who.size) if not which[i]),
        ],
    )
    put(
        "sre/submission_2008.txt",
        [
            f"short2 n short3 f {1001 + who[i]} seg{j:03d} a {'t' if float(score[i, j]) > 0.5 else 'f'} {score[i, j]}"
            for i, j in models
        ],
    )

    put("bob/scores-dev", [f"{PEOPLE[who[i]]} {PEOPLE[who[j]]} s{who[j]}/{which[j]} {score[i, j]}" for i, j in models])
    put(
        "bob/scores-dev-5col",
        [f"{PEOPLE[who[i]]} s{who[i]}_model {PEOPLE[who[j]]} s{who[j]}/{which[j]} {score[i, j]}" for i, j in models],
    )
    put(
        "bob/scores-dev.csv",
        [
            "probe_template_id,probe_subject_id,bio_ref_template_id,bio_ref_subject_id,score,bio_ref_gender,probe_gender",
            *(f"s{j},{PEOPLE[who[j]]},m{i},{PEOPLE[who[i]]},{score[i, j]},female,female" for i, j in models),
        ],
    )

    put("pyeer/exp1_genuine", [score[p] for p in pairs if same[p]])
    put("pyeer/exp1_impostor", [score[p] for p in pairs if not same[p]])
    alike = [p for p in pairs if same[p]]
    other = [p for p in pairs if not same[p]][: len(alike)]
    put(
        "lfw/pairs.txt",
        [
            f"1\t{len(alike)}",
            *(f"{PEOPLE[who[i]]}\t{which[i] + 1}\t{which[j] + 1}" for i, j in alike),
            *(f"{PEOPLE[who[i]]}\t{which[i] + 1}\t{PEOPLE[who[j]]}\t{which[j] + 1}" for i, j in other),
        ],
    )
    put("lfw/scores.txt", [score[p] for p in [*alike, *other]])

    template = [3 * i + 1 for i in range(who.size)]
    put("ijb/ijbc_template_pair_label.txt", [f"{template[i]} {template[j]} {int(same[i, j])}" for i, j in pairs])
    put("ijb/ijbc_11_G1_G2_matches.csv", [f"{template[i]},{template[j]}" for i, j in pairs])
    put("ijb/scores.txt", [score[p] for p in pairs])
    meta = [f"{template[i]},{40 + who[i]},img/{i}.jpg,,10,20,50,60" for i in range(who.size)]
    head = "TEMPLATE_ID,SUBJECT_ID,FILENAME,SIGHTING_ID,FACE_X,FACE_Y,FACE_WIDTH,FACE_HEIGHT"
    put("ijb/ijbc_1N_gallery_G1.csv", [head, *meta[::2]])
    put("ijb/ijbc_1N_gallery_G2.csv", [head, *meta[1::2]])

    weight = {p: f"{10 * float(score[p]):.5f}" for p in pairs}
    rows = [
        f"{weight[i, j]},{float(score[i, j]) / 2 + 0.5:.6f},people,{i},people,{j},"
        f"{PEOPLE[who[i]]},{PEOPLE[who[j]]},{who[i]},{who[j]},0"
        for i, j in pairs
    ]
    head = "match_weight,match_probability,source_dataset_l,unique_id_l,source_dataset_r,unique_id_r,name_l,name_r"
    put("splink/predictions_with_cluster.csv", [f"{head},cluster_l,cluster_r,match_key", *rows])
    put("splink/predictions.csv", [f"{head},match_key", *(",".join([*r.split(",")[:8], "0"]) for r in rows)])
    put(
        "splink/labels.csv",
        [
            "unique_id_l,source_dataset_l,unique_id_r,source_dataset_r,clerical_match_score",
            *(f"{j},people,{i},people,{float(same[i, j])}" for i, j in pairs),
            "0,people,99,people,0.0",
        ],
    )

    path = HERE / "plain" / "embeddings.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["", "id", *(f"feature_{k}" for k in range(4))])
        writer.writerows([i, f"{who[i]:03d}", *vectors[i]] for i in range(who.size))


if __name__ == "__main__":
    main()
