//! Scratch.
#![allow(
    clippy::all,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    dead_code,
    clippy::expect_used,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    clippy::panic,
    clippy::cast_precision_loss
)]
#[path = "prof_records.rs"]
mod records;
use bson::{Document, RawDocumentBuf, doc};
use slate_core::{Collection, Database, Durability, Index};
use std::time::Instant;

fn want0(only: &str, name: &str) -> bool {
    only.is_empty() || only.split(';').any(|o| name == o)
}
fn med(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let url = &args[1];
    let only = args.get(2).cloned().unwrap_or_default();
    let runs: usize = args.get(3).map_or(15, |r| r.parse().unwrap());
    let n: usize = args.get(4).map_or(100_000, |r| r.parse().unwrap());
    let url = if url == "redb" {
        let p = "/tmp/prof/x.slate";
        let _ = std::fs::remove_file(p);
        format!("redb:{p}")
    } else if url == "rocksdb" {
        let p = "/tmp/prof/rocks";
        let _ = std::fs::remove_dir_all(p);
        format!("rocksdb:{p}")
    } else {
        url.clone()
    };
    let mut maker = records::Maker::new(42);
    let docs: Vec<RawDocumentBuf> = (0..n).map(|i| maker.raw(i).unwrap()).collect();
    let extra: Vec<RawDocumentBuf> = (0..if want0(&only, "upsert new") { 1000 * (runs + 1) } else { 0 })
        .map(|i| maker.raw(n + i).unwrap())
        .collect();
    let want = |name: &str| only.is_empty() || only.split(';').any(|o| *name == *o);
    let db = Database::builder(&url).durability(Durability::Deferred).open().unwrap();
    if want("bulk") {
        let mut t = vec![];
        for r in 0..5 {
            let c = db.collection::<RawDocumentBuf>(&format!("b{r}"));
            c.create_index(Index::on(doc! {"status":1})).unwrap();
            c.create_index(Index::on(doc! {"contacts_count":1})).unwrap();
            let s = Instant::now();
            for b in docs.chunks(10_000) {
                c.insert_many(b).unwrap();
            }
            t.push(s.elapsed().as_secs_f64() * 1e6);
            c.drop().unwrap();
        }
        println!("{:40} {:10.0} us", "bulk insert 2 idx", med(t));
    }
    let c = db.collection::<RawDocumentBuf>("records");
    c.create_index(Index::on(doc! {"status":1})).unwrap();
    c.create_index(Index::on(doc! {"contacts_count":1})).unwrap();
    for b in docs.chunks(10_000) {
        c.insert_many(b).unwrap();
    }
    let run = |name: &str, f: &mut dyn FnMut() -> usize| {
        if !want(name) {
            return;
        }
        let rows = f();
        let mut t = vec![];
        for _ in 0..runs {
            let s = Instant::now();
            std::hint::black_box(f());
            t.push(s.elapsed().as_secs_f64() * 1e6);
        }
        println!("{name:40} {:10.1} us  {rows}", med(t));
    };
    let lent = |f: Document, s: Document, p: Document, skip: u64, lim: u64| {
        let mut q = c.find(&f).skip(skip);
        if !s.is_empty() {
            q = q.sort(&s);
        }
        if !p.is_empty() {
            q = q.project(&p);
        }
        if lim > 0 {
            q = q.limit(lim);
        }
        let mut cur = q.cursor().unwrap();
        let mut rows = 0;
        let mut sum = 0i64;
        while cur.advance().unwrap() {
            let d = cur.current().unwrap();
            sum += d.get_i32("_id").unwrap_or(0) as i64;
            rows += 1;
        }
        std::hint::black_box(sum);
        rows
    };
    {
        let mut cur = c.find(doc! {}).cursor().unwrap();
        let mut last = 0usize;
        let (mut near, mut back, mut far) = (0, 0, 0);
        while cur.advance().unwrap() {
            let p = cur.current().unwrap().as_bytes().as_ptr() as usize;
            let d = p as i64 - last as i64;
            if d > 0 && d < 1024 {
                near += 1
            } else if d < 0 && d > -1024 {
                back += 1
            } else {
                far += 1
            };
            last = p;
        }
        println!("near {near} back {back} far {far}");
    }
    let a = || doc! {"status":"active"};
    run("scan", &mut || lent(doc! {}, doc! {}, doc! {}, 0, 0));
    run("owned scan", &mut || c.find(doc! {}).run().unwrap().map(|d| d.unwrap()).count());
    run("status", &mut || lent(a(), doc! {}, doc! {}, 0, 0));
    run("covered", &mut || lent(a(), doc! {}, doc! {"status":1}, 0, 0));
    run("rec1", &mut || lent(doc! {"product_recommendation1":"ProductA"}, doc! {}, doc! {}, 0, 0));
    run("and3", &mut || {
        lent(
            doc! {"status":"active","product_recommendation1":"ProductA","product_recommendation2":"ProductX"},
            doc! {},
            doc! {},
            0,
            0,
        )
    });
    run("status sort skip50", &mut || lent(a(), doc! {"contacts_count":1}, doc! {}, 100, 50));
    run("statusort all", &mut || lent(a(), doc! {"contacts_count":1}, doc! {}, 0, 0));
    run("statlimit 200", &mut || lent(a(), doc! {}, doc! {}, 0, 200));
    run("statsort 200", &mut || lent(a(), doc! {"contacts_count":1}, doc! {}, 0, 200));
    run("idxsort 200", &mut || lent(doc! {}, doc! {"contacts_count":1}, doc! {}, 0, 200));
    run("idxsort all", &mut || lent(doc! {}, doc! {"contacts_count":1}, doc! {}, 0, 0));
    run("cc-desc,name 200", &mut || lent(doc! {}, doc! {"contacts_count":-1,"name":1}, doc! {}, 0, 200));
    run("lowcard status-desc,cc 200", &mut || lent(doc! {}, doc! {"status":-1,"contacts_count":1}, doc! {}, 0, 200));
    run("topk name,cc 200", &mut || lent(doc! {}, doc! {"name":1,"contacts_count":-1}, doc! {}, 0, 200));
    run("nullsort name all", &mut || lent(doc! {}, doc! {"name":1}, doc! {}, 0, 0));
    run("null lca", &mut || lent(doc! {"last_contacted_at":null_()}, doc! {}, doc! {}, 0, 0));
    run("null notes", &mut || lent(doc! {"notes":null_()}, doc! {}, doc! {}, 0, 0));
    run("notnull lca", &mut || lent(doc! {"last_contacted_at":{"$ne":null_()}}, doc! {}, doc! {}, 0, 0));
    run("stat+notes null", &mut || lent(doc! {"status":"active","notes":null_()}, doc! {}, doc! {}, 0, 0));
    run("proj name,status", &mut || lent(doc! {}, doc! {}, doc! {"name":1,"status":1}, 0, 0));
    run("tags", &mut || lent(doc! {"tags":"renewal_due"}, doc! {}, doc! {}, 0, 0));
    run("lookups", &mut || {
        let mut k = 0;
        for i in 0..1000 {
            let id = (i * 7919) % n;
            if c.find_by_id(id as i32).unwrap().is_some() {
                k += 1;
            }
        }
        k
    });
    run("lentlookups", &mut || {
        let mut k = 0;
        for i in 0..1000 {
            let id = (i * 7919) % n;
            k += lent(doc! {"_id": id as i32}, doc! {}, doc! {}, 0, 0);
        }
        k
    });
    run("count status", &mut || c.count(a()).unwrap() as usize);
    run("dist status", &mut || c.distinct("status", doc! {}).unwrap().len());
    run("dist cc", &mut || c.distinct("contacts_count", doc! {}).unwrap().len());
    run("dist rec1 scan", &mut || c.distinct("product_recommendation1", doc! {}).unwrap().len());
    run("dist rec1 active", &mut || c.distinct("product_recommendation1", a()).unwrap().len());
    run("dist lca", &mut || c.distinct("last_contacted_at", doc! {}).unwrap().len());
    let mut at = 0;
    run("upsert new", &mut || {
        let b = &extra[at..at + 1000];
        at = (at + 1000) % extra.len();
        c.upsert_many(b).unwrap();
        1000
    });
    run("upsert existing", &mut || {
        c.upsert_many(&docs[..1000]).unwrap();
        1000
    });
    let mut k = 0;
    let merges = |k: i32| -> Vec<Document> {
        (0..1000).map(|i| doc!{"_id": i, "status": if k % 2 == 0 {"active"} else {"rejected"}, "contacts_count": (i + k) % 101}).collect()
    };
    run("merge existing", &mut || {
        k += 1;
        c.merge_many(merges(k)).unwrap();
        1000
    });
    run("explain only", &mut || {
        c.find(a()).explain().unwrap();
        1
    });
}
fn null_() -> bson::Bson {
    bson::Bson::Null
}
