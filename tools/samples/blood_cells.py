"""A small real analysis of 700 blood cells: the functions that the sample histories of steps call.

It needs scanpy, which bundles the data, and gseapy. Neither is a dependency of evalkit. See `tools.samples.steps`.
"""

import math
import re
from html import escape
from pathlib import Path
from typing import Any

FAMILIES = {
    "MHC class II": r"HLA-D",
    "MHC class I": r"HLA-[ABCEFG]$|B2M",
    "respiratory chain": r"NDUF|COX|UQCR|ATP5",
    "mitochondrial ribosome": r"MRP[LS]",
    "cytosolic ribosome": r"RP[LS]\d",
    "translation initiation": r"EIF",
    "splicing factors": r"SRSF|HNRN|LSM|SNRP",
    "chaperones": r"CCT\d|TCP1|HSP|DNAJ",
    "S100 proteins": r"S100",
    "interferon-induced": r"IFI|ISG|IRF|MX\d",
    "granule proteins": r"GZM|PRF1|GNLY|NKG7",
    "T-cell surface": r"CD2$|CD3|CD8|CD28|CD5$|CD6$|CD7$",
    "DNA replication": r"MCM\d|PCNA|TYMS|TOP2A|RRM|POL[ADE]",
    "cell cycle": r"CDK\d|CCN[ABDE]|CDC\d|TUB|BIRC5|MKI67|HIST",
}
MARKERS = {
    "T cell": ["CD3D", "CD3E", "IL7R", "CD8A", "LCK"],
    "B cell": ["CD79A", "MS4A1", "CD79B", "CD74", "BANK1"],
    "Monocyte": ["S100A8", "S100A9", "FCN1", "LST1", "CD14"],
    "NK cell": ["GNLY", "PRF1", "FGFBP2", "SPON2", "FCGR3A"],
    "Dendritic cell": ["FCER1A", "CLEC10A", "CST3", "CD1C", "HLA-DQA1"],
    "Progenitor": ["CD34", "SPINK2", "CYTL1", "GATA2", "EGFL7"],
}


class Analysis:
    """The functions that an agent calls on real data."""

    def __init__(self, libraries: tuple[str, ...]) -> None:
        import scanpy as sc

        self.sc = sc
        self.data = sc.datasets.pbmc68k_reduced()
        self.genes = list(self.data.raw.var_names)
        self.data.obs["cell_type"] = self.data.obs["bulk_labels"].astype(str)
        sets = self._gene_sets()
        self.sets = {name: sets[name] for name in libraries}

    def process_cells(self, cell_type: str) -> Any:
        """Name every cluster after the markers that it expresses most."""
        if cell_type != "PBMC":
            raise ValueError(f"No cells of type '{cell_type}' found in the data")
        expression = self.data.raw.to_adata().to_df()
        scaled = (expression - expression.mean()) / expression.std()
        scores = {name: scaled[[g for g in genes if g in scaled]].mean(axis=1) for name, genes in MARKERS.items()}
        clusters = self.data.obs["louvain"]
        groups = {}
        for cluster in clusters.cat.categories:
            mean = {name: score[clusters == cluster].mean() for name, score in scores.items()}
            groups[str(cluster)] = max(mean, key=mean.__getitem__)
        self.data.obs["cell_type"] = clusters.astype(str).map(groups)
        used = "; ".join(f"{name}: {', '.join(genes)}" for name, genes in MARKERS.items())
        return f"Process cells completed. Markers used: {used}. group_to_cell_type = {groups}"

    def dea_split_by_condition(self, cell_type: str) -> Any:
        """Compare the sorted populations (bulk labels) within one cell type."""
        cells = self.data[self.data.obs["cell_type"] == cell_type].copy()
        if cells.n_obs == 0:
            raise ValueError(f"No cells of type '{cell_type}' found in the data")
        sizes = cells.obs["bulk_labels"].value_counts()
        conditions = sizes[sizes >= 10].index.tolist()
        if len(conditions) < 2:
            return {}  # without an error, like the agent's function if it can't compare
        cells = cells[cells.obs["bulk_labels"].isin(conditions)].copy()
        self.sc.tl.rank_genes_groups(cells, "bulk_labels", method="wilcoxon", use_raw=True)
        return {
            "dea_results": [
                {
                    "category": f"{cell_type}, {condition}",
                    "significant_genes": _significant(self.sc, cells, condition),
                    "description": f"{cell_type}: genes higher in {condition}, adjusted p < 0.05",
                }
                for condition in conditions
            ],
            "hierarchy_metadata": {"cell_type": cell_type, "n_cells": cells.n_obs},
            "resolution_info": {"exact_match": True},
        }

    def perform_enrichment_analyses(self, cell_type: str, analyses: list[str]) -> Any:
        """Find gene sets over-represented among the genes of one cell type against the rest."""
        import gseapy

        ranked = self._against_rest(cell_type)
        listed = ranked[(ranked.pvals_adj < 0.05) & (ranked.logfoldchanges > 0)].names.tolist()
        out: dict[str, Any] = {}
        for method in analyses:
            if method == "gsea":
                scores, how = ranked.set_index("names")["scores"], {"min_size": 3, "permutation_num": 200, "seed": 1}
                table = gseapy.prerank(scores, self.sets["go"], outdir=None, no_plot=True, **how).res2d
            else:
                done = gseapy.enrich(listed, self.sets[method], background=self.genes, outdir=None, no_plot=True)
                table = done.results
            table = table.rename(columns={"NOM p-val": "p", "Adjusted P-value": "p"}).astype({"p": float})
            table = table.sort_values(["p", "Term"])
            hits = table[table["p"] < 0.05]
            out[method] = {
                "top_terms": hits["Term"].head(10).tolist(),
                "top_pvalues": hits["p"].head(10).tolist(),
                "total_significant": len(hits),
            }
        counts = ", ".join(f"{m.upper()} {r['total_significant']}" for m, r in out.items())
        listing = [{"method": m, "term": t} for m, r in out.items() for t in r["top_terms"][:3]]
        out |= {"formatted_summary": f"Enrichment of {cell_type}: {counts} significant terms", "top_terms": listing}
        out |= {"significant_genes": listed[:50], "conditions": ["all"]}
        return out | {"hierarchy_metadata": {"cell_type": cell_type}}

    def compare_cell_counts(self, cell_types: list[str]) -> Any:
        """Count cells per type and phase."""
        obs = self.data.obs
        return {
            "count_results": [
                {
                    "category": f"{name}, phase {phase}",
                    "cell_count": (obs["cell_type"].eq(name) & obs["phase"].eq(phase)).to_numpy().sum(),
                    "description": f"{name} in phase {phase}",
                }
                for name in cell_types
                for phase in ("G1", "S", "G2M")
            ]
        }

    def search_enrichment_semantic(self, query: str) -> Any:
        """Search the terms of all gene sets for a word."""
        terms = [(m, t) for m, sets in self.sets.items() for t in sets if query.lower() in t.lower()]
        matches = [{"method": m, "term": t, "genes": len(self.sets[m][t])} for m, t in terms]
        return {"search_results": {"query": query, "total_matches": len(matches), "results": matches}}

    def display_cell_count_comparison(self, cell_types: list[str]) -> str:
        """Draw cells per type."""
        counts = self.data.obs["cell_type"].value_counts()
        return _bars("Cells per type", {name: int(counts.get(name, 0)) for name in cell_types})

    def display_enrichment_barplot(self, cell_type: str, analysis: str) -> str:
        """Draw the terms of one enrichment."""
        if cell_type not in set(self.data.obs["cell_type"]):
            return f"Enrichment barplot not available: no {analysis} results for '{cell_type}'."
        result = self.perform_enrichment_analyses(cell_type, [analysis])[analysis]
        strength = [-math.log10(max(p, 1e-300)) for p in result["top_pvalues"]]
        return _bars(f"{cell_type}: {analysis}, -log10 p", dict(zip(result["top_terms"], strength, strict=True)))

    def load_annotations(self, path: str) -> str:
        """Read a file of annotations."""
        return Path(path).read_text()

    def conversational_response(self) -> str:
        """Summarise the analysis."""
        return "The analysis ended. " + " ".join(
            f"{name}: {n} cells." for name, n in self.data.obs["cell_type"].value_counts().items()
        )

    def _against_rest(self, cell_type: str) -> Any:
        self.sc.tl.rank_genes_groups(self.data, "cell_type", groups=[cell_type], method="wilcoxon", use_raw=True)
        return self.sc.get.rank_genes_groups_df(self.data, cell_type)

    def _gene_sets(self) -> dict[str, dict[str, list[str]]]:
        half = self.data[::2].copy()  # derive the sets from one half of the cells only
        named = {f"family: {n}": [g for g in self.genes if re.match(p, g)] for n, p in FAMILIES.items()}
        learnt = {}
        for method, column in (("kegg", "bulk_labels"), ("reactome", "louvain")):
            groups = half.obs[column].value_counts().loc[lambda n: n >= 10].index.tolist()
            self.sc.tl.rank_genes_groups(half, column, groups=groups, method="wilcoxon", use_raw=True)
            names = {g: _significant(self.sc, half, g)[:30] for g in groups}
            kind = "cell type" if column == "bulk_labels" else "cluster"
            learnt[method] = {f"markers of {kind}: {g}": genes for g, genes in names.items()}
        return {"go": {name: genes for name, genes in named.items() if len(genes) >= 3}, **learnt}


def _significant(sc: Any, cells: Any, group: str) -> list[str]:
    table = sc.get.rank_genes_groups_df(cells, group)
    return table[(table.pvals_adj < 0.05) & (table.logfoldchanges > 0)].names.tolist()


def _bars(title: str, values: dict[str, float]) -> str:
    top = max([*values.values(), 1e-300])
    rows = "".join(
        f'<text x="0" y="{20 * i + 14}">{escape(name)}</text><rect x="230" y="{20 * i + 3}" height="14" '
        f'width="{200 * value / top:.1f}" fill="#0072B2"/><text x="440" y="{20 * i + 14}">{value:.3g}</text>'
        for i, (name, value) in enumerate(values.items())
    )
    height = 20 * len(values) + 6
    drawing = f'<svg width="520" height="{height}" font-family="sans-serif" font-size="12">{rows}</svg>'
    return f"<!DOCTYPE html><html><body><h3>{escape(title)}</h3>{drawing}</body></html>"
