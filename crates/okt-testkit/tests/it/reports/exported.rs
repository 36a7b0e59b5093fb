//! Reports in the formats of other programs.

use serde_json::json;

use super::{MITE, SUN, health, source, started, write};

#[tokio::test]
async fn a_report_is_exported_with_what_its_claims_rest_on() {
    let app = started().await;
    let bees = source(&app, "bees.txt", SUN).await;
    let mites = source(&app, "mites.txt", MITE).await;
    source(&app, "else.txt", "Whales sing to each other across whole oceans in the months of winter.").await;
    let wrong = "Varroa mites killed 70 percent of all honey bee colonies in Norway in 2006.";
    let report = write(
        &app,
        "Bees <and> mites",
        &format!("# Bees\n\n{SUN}\n\n{wrong}\n\n<script>alert(1)</script>\n"),
    )
    .await;
    health(&app, &report, "both claims are checked", |counts| {
        counts["supported"] == 1 && counts["contradicted"] == 1
    })
    .await;
    let export = async |format: &str| {
        let answer = app.get(&format!("/reports/{report}/export?format={format}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        (
            answer.header("content-type").to_owned(),
            answer.header("content-disposition").to_owned(),
            answer.text.clone(),
        )
    };
    let (kind, name, markdown) = export("md").await;
    assert!(kind.starts_with("text/markdown") && name.starts_with("attachment"), "{kind} {name}");
    assert!(
        markdown.contains("[^okt-1]") && markdown.contains(MITE) && markdown.contains("contradict"),
        "{markdown}"
    );
    let (kind, _, html) = export("html").await;
    assert!(kind.starts_with("text/html"), "{kind}");
    assert!(html.contains(MITE) && !html.contains("<script>"), "{html}");
    for (format, sign) in [("bibtex", "@"), ("ris", "TY  -"), ("csl", "[")] {
        let (_, _, list) = export(format).await;
        assert!(list.trim_start().starts_with(sign), "{list}");
        let (one, other) = (bees.replace('-', ""), mites.replace('-', ""));
        assert!(list.contains(&one) && list.contains(&other) && !list.contains("Whales"), "{list}");
    }
    let refused = app.get(&format!("/reports/{report}/export?format=docx")).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["errors"][0]["field"]), (422, &json!("format")));
}
