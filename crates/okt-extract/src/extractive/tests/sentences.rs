//! Sentences to be weighed, written for this purpose.

use crate::reason::Reason::{self, *};

/// English sentences that are left out, by why.
pub const LEFT_OUT: &[(Reason, &[&str])] = &[
    (
        NotASentence,
        &[
            "Birds can fly.",
            "Mitochondria are the powerhouse of the cell",
            "The cell has several kinds of organelles:",
            "The cell has mitochondria, ribosomes and…",
            "The cell has mitochondria, ribosomes and...",
            "What a wonderful thing the heart is!",
            "A darning needle with a thread of wool.",
            "The heron (Ardea cinerea is a bird of lakes.",
            "The heron is a \"bird of lakes and rivers.",
            "THE HERON IS A BIRD OF LAKES AND RIVERS.",
            "12.5 13.7 14.9 22.1 7 and 33.4 are 44.",
            "Data are at https://data.example/a/very/long/path/to/a/file.csv.",
            "- The heron is a bird of lakes and rivers.",
            "3. The heron is a bird of lakes and rivers.",
            "2 The heron is a bird of lakes and rivers.",
            "(The heron is a bird of lakes and rivers.)",
            "is a bird that lives in lakes and rivers.",
            "Conclusion: the heron is a bird of lakes and rivers.",
            "Ana Ruiz, head of Halden Toys, a maker that sells in Norway.",
            "While small Halden toys only face lighter rules, including a few of Norway.",
            "Halden X, a boat built by the Ulm-led Ferries of Norway.",
            "Halden Ferries, which have all raised sums with similar goals.",
            "Let x ∈ A ∩ B be given for all cases in Halden.",
        ],
    ),
    (
        RunTogether,
        &[
            "Trials were held in arenas of 1.5 m. Arena four was left empty.",
            "Engines of ships The ferry of Halden has two engines.",
            "The losers Casino owner Halden Group closed two houses in 2021.",
            "CONCLUSIONS Regular exercise lowers the blood pressure of old men.",
            "HALDEN (XY) — The city of Halden closed its harbour in 1998.",
            "Mayor of Halden leaves office: Ana Ruiz was mayor until 2021.",
        ],
    ),
    (Question, &["Does the heart have four chambers in it?"]),
    (
        Quotation,
        &[
            "“The bridge was built for the traffic of 1931.”",
            "Halden Ferries needs “two new engines by 2031,” she said.",
        ],
    ),
    (
        Reference,
        &["Ito, K. and Brown, J. wrote Slime and Time.", "[12] Ito and Brown wrote Slime and Time in 2004."],
    ),
    (
        Caption,
        &[
            "Figure 3 shows the number of passages per evening.",
            "Ana Ruiz opens the bridge in Halden, photo by Jo Lund.",
        ],
    ),
    (
        Boilerplate,
        &[
            "Photo of the bridge of Halden at low tide.",
            "Copyright 2024 The Example Press of Halden Limited.",
            "The Example Press has all rights reserved in Europe.",
            "Click here to find more articles about herons.",
            "The site uses cookies to make visits better.",
            "Members may sign up for the weekly newsletter.",
            "9:04 p.m. — Halden United has the ball again.",
            "Halden email {{ #errors }} {{ message }} {{ /errors }} went wrong.",
            "Halden Ferries did not respond to a request for comment.",
            "The Halden Blender is on sale for $79 at Norway Home.",
            "The Halden Blender costs $79 and is 20% off in Norway.",
        ],
    ),
    (
        Instruction,
        &[
            "Pull the fabric over the orange carefully.",
            "Fry the onion in olive oil over low heat.",
            "Built in 1911, with a roof that opens.",
            "To see the tides of Halden, open the map of Norway.",
            "Asks the mayor of Halden for two new ferries.",
        ],
    ),
    (
        FirstOrSecondPerson,
        &[
            "In 2011 we measured the height of the surface.",
            "Copper can be found in your own kitchen.",
            "Because I, too, use the ferry of Halden.",
        ],
    ),
    (
        Connective,
        &[
            "This process requires oxygen and releases energy.",
            "They nest on three islands of Lake Ulm.",
            "However, herons do not migrate in the winter.",
            "In contrast, tigers are solitary for most of life.",
            "For example, copper conducts electricity quite well.",
            "Such metals conduct electricity better than glass does.",
            "The latter is used in most cables of houses.",
            "Each carries 60 passengers and four crew members.",
            "Both are found in the rivers of Europe.",
            "Within three, eelgrass had been seen at five stations.",
            "One of the boats at the east pier.",
            "Inside, every wall was painted in red and gold.",
            "Other ferries of Halden carry cars and lorries.",
        ],
    ),
    (
        Pronoun,
        &[
            "After the war he moved to Paris with Anna.",
            "In 1998 it was closed by the city council.",
            "According to Anna Ruiz, she was born in Halden.",
            "Halden Ferries said it was part of a long plan.",
            "About a third of their customers come by car.",
            "About 340 herons have nested there since 1998.",
            "The Halden council wants to repeat that feat.",
            "Ana Ruiz leads both companies from Halden.",
            "Ana Ruiz researched it and became a sailor.",
            "Born in Paris, he wrote three books about herons.",
            "Former Halden mayor Ana Ruiz of Norway loves it.",
            "Ana Ruiz of Halden wants another.",
            "Halden Ferries opened another harbour in Norway.",
            "Ana Ruiz of Halden never thought about it.",
        ],
    ),
    (
        UnnamedSubject,
        &[
            "The effect was lost at about 31 degrees.",
            "The authors found that herons do not migrate.",
            "In the complaint, Halden Ferries argues that Ulm Lines copied two ships.",
            "Rita Foss (Ana Ruiz) hides the money of her husband in Halden.",
            "There are two USB-C ports and one USB-A port.",
            "Halden Ferries and Ulm Lines joined the round.",
            "The T7 Shield comes with a rubberized exterior.",
            "The line closed on the last day of 1936.",
            "The company was founded in 1936 in Halden.",
            "Accel led the company’s first round in 2019.",
            "The Boston-based company, which makes ferries, has 300 workers.",
            "The ship sails twice a day in the winter.",
            "The OLED panel is thinner than paper.",
            "A ruling came down against two small ferries.",
            "The most immediate is the threat of a flood in Halden.",
        ],
    ),
    (
        RelativeTime,
        &[
            "The council of Halden voted on Tuesday night to close the bridge.",
            "Unemployment in Norway rose again last year.",
            "Halden Rovers lost vs. the Ulm Bears by three points.",
            "Tom Foss of the Ulm Bears scored a touchdown.",
            "Ana Ruiz opened the bridge of Halden in August.",
            "Halden Ferries is now the largest company of Norway.",
            "Shares of Halden Ferries fell 2.3 per cent.",
            "Two months later, Halden Ferries bought the bridge of Ulm.",
        ],
    ),
];

/// Two sentences that stand alone and two that lean on something, by language.
pub const OTHER_LANGUAGES: [(&str, [&str; 2], [&str; 2]); 9] = [
    (
        "de",
        [
            "Berlin ist die Hauptstadt der Bundesrepublik Deutschland.",
            "Am 3. Mai 1998 wurde die Brücke in Köln gesperrt.",
        ],
        [
            "Das ist die Hauptstadt der Bundesrepublik Deutschland.",
            "Dabei wurde die alte Brücke in Köln gesperrt.",
        ],
    ),
    (
        "fr",
        ["En 1998, la ville de Lyon a fermé le port.", "Le premier roi de France fut couronné à Reims."],
        ["Cette ville a fermé le port en 1998.", "En 1998, elle a fermé le port de Lyon."],
    ),
    (
        "es",
        [
            "La ciudad de Sevilla tiene cuatro puentes sobre el río.",
            "Madrid es la capital de España desde 1561.",
        ],
        [
            "Es la capital de España desde el año 1561.",
            "Sin embargo, Madrid tiene más de tres millones de habitantes.",
        ],
    ),
    (
        "it",
        [
            "Gli aironi del lago di Garda nidificano su tre isole.",
            "Roma è la capitale della Repubblica Italiana.",
        ],
        ["Fu la capitale della Repubblica Italiana nel 1946.", "Questo lago ha tre isole e molti aironi."],
    ),
    (
        "pt",
        [
            "A cidade do Porto tem seis pontes sobre o rio Douro.",
            "Nos Estados Unidos vivem mais de 300 milhões de pessoas.",
        ],
        [
            "Foi a capital de Portugal durante muitos anos.",
            "Além disso, o Porto tem seis pontes sobre o rio.",
        ],
    ),
    (
        "nl",
        [
            "Het Rijksmuseum in Amsterdam werd in 1885 geopend.",
            "Amsterdam is de stad die in 1275 tolrecht kreeg.",
        ],
        ["Het is de hoofdstad van Nederland sinds 1814.", "Daarom werd het Rijksmuseum in 1885 geopend."],
    ),
    (
        "ru",
        [
            "Москва является столицей Российской Федерации с 1918 года.",
            "Пушкин родился в Москве в 1799 году.",
        ],
        ["Он родился в Москве в 1799 году.", "Поэтому Москва является столицей Российской Федерации."],
    ),
    (
        "zh",
        ["北京是中华人民共和国的首都。", "图书馆将在各馆安装自助借还机。"],
        ["这是中华人民共和国的首都。", "他出生在北京的一个小村庄里。"],
    ),
    (
        "ja",
        ["東京は日本の首都である。", "富士山は日本で最も高い山です。"],
        ["それは日本の首都である。", "しかし東京は日本の首都である。"],
    ),
];
