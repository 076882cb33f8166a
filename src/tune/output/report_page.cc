#include "tune/output/report_page.h"

namespace kolo::tune {

std::string_view report_page() {
  return R"page(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>kolo study {{title}}</title>
<style>
:root{--ink:#1c2733;--soft:#66727f;--line:#dde3e9;--blue:#2b6cb0;--red:#c0392b;--gold:#b7791f;--green:#2f855a}
body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);margin:0;background:#f5f7f9}
header{background:#fff;border-bottom:1px solid var(--line);padding:16px 28px}
h1{font-size:20px;margin:0}h2{font-size:15px;margin:0 0 8px}
main{display:grid;grid-template-columns:repeat(auto-fit,minmax(520px,1fr));gap:16px;padding:16px 28px}
section{background:#fff;border:1px solid var(--line);border-radius:6px;padding:14px 16px;overflow:hidden}
section.wide{grid-column:1/-1}.facts{color:var(--soft);margin-top:4px}
svg{width:100%;height:auto;display:block}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}
.axis{stroke:var(--line)}.empty{color:var(--soft);padding:24px 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:3px 10px 3px 0;border-bottom:1px solid var(--line);white-space:nowrap}
th{cursor:pointer;color:var(--soft);font-weight:600;position:sticky;top:0;background:#fff}
.rows{max-height:420px;overflow:auto}input{padding:5px 8px;width:320px;border:1px solid var(--line);border-radius:4px;margin-bottom:8px}
.best td{font-weight:600}.key span{margin-right:14px}.key i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
</style></head><body>
<header><h1>{{title}}</h1><div class="facts" id="facts"></div></header>
<main>
<section><h2>Optimisation history</h2><div id="history"></div></section>
<section><h2>Learning curves</h2><div id="curves"></div></section>
<section class="wide"><h2>Parallel coordinates</h2><div id="parallel"></div></section>
<section><h2>Importance of parameters</h2><div id="importance"></div></section>
<section><h2>Timeline of slots</h2><div id="timeline"></div></section>
<section class="wide"><h2>Trials</h2><input id="filter" placeholder="filter: words, or lr&lt;0.1, status==ERROR">
<div class="rows"><table id="table"></table></div></section>
</main>
<script id="data" type="application/json">{{data}}</script>
<script>
'use strict';
const S=JSON.parse(document.getElementById('data').textContent);
const NS='http://www.w3.org/2000/svg',W=640,H=280,L=56,R=14,T=10,B=28;
const first=S.objectives[0],smaller=!first||first.min;
const better=(a,b)=>smaller?a<b:a>b;
const val=t=>t.values.length?t.values[0]:null;
const color=t=>t.status==='ERROR'?'var(--red)':t.stopped?'var(--gold)':t.status==='TERMINATED'?'var(--blue)':'var(--green)';
const fmt=v=>v===null||v===undefined?'':typeof v==='number'?(Number.isInteger(v)?String(v):Number(v.toPrecision(5)).toString()):String(v);
let best=null;for(const t of S.trials)if(val(t)!==null&&(best===null||better(val(t),val(best))))best=t;
function el(name,attrs,parent,text){const e=document.createElementNS(NS,name);for(const k in attrs)e.setAttribute(k,attrs[k]);if(text!==undefined)e.textContent=text;parent.appendChild(e);return e;}
function svg(id,h=H,w=W){const s=el('svg',{viewBox:`0 0 ${w} ${h}`},document.getElementById(id));return s;}
function empty(id,why){const d=document.createElement('div');d.className='empty';d.textContent=why;document.getElementById(id).appendChild(d);}
function span(list){let a=Math.min(...list),b=Math.max(...list);if(a===b){a-=.5;b+=.5;}return[a,b];}
function big(list){let a=Infinity,b=-Infinity;for(const v of list){if(v<a)a=v;if(v>b)b=v;}return a===b?[a-.5,b+.5]:[a,b];}
function ticks(a,b,n=5){const step=Math.pow(10,Math.floor(Math.log10((b-a)/n)));const m=[1,2,5,10].find(k=>(b-a)/(k*step)<=n)*step;const out=[];for(let v=Math.ceil(a/m)*m;v<=b+1e-12;v+=m)out.push(Number(v.toPrecision(12)));return out;}
function axes(s,[x0,x1],[y0,y1],xl,yl){const X=v=>L+(v-x0)/(x1-x0)*(W-L-R),Y=v=>H-B-(v-y0)/(y1-y0)*(H-T-B);
for(const v of ticks(y0,y1)){el('line',{x1:L,x2:W-R,y1:Y(v),y2:Y(v),class:'axis'},s);el('text',{x:L-6,y:Y(v)+4,'text-anchor':'end'},s,fmt(v));}
for(const v of ticks(x0,x1,8))el('text',{x:X(v),y:H-B+15,'text-anchor':'middle'},s,fmt(v));
el('text',{x:W-R,y:H-2,'text-anchor':'end'},s,xl);el('text',{x:2,y:T+8,},s,yl);return[X,Y];}
function tip(e,text){el('title',{},e,text);}
const label=t=>`trial ${t.n}: ${first?first.metric+' '+fmt(val(t)):''} ${t.status}${t.stopped?' (stopped early)':''}\n`+Object.entries(t.config||{}).map(([k,v])=>k+'='+fmt(v)).join(' ')+(t.why?'\n'+t.why:'');
// a few far-off values must not flatten the rest
function clipped(list){const s=[...list].sort((a,b)=>a-b),q=p=>s[Math.floor(p*(s.length-1))];const lo=q(.02),hi=q(.98);const w=(hi-lo)||1;return big(s.filter(v=>v>=lo-2*w&&v<=hi+2*w));}
(function facts(){const c={};for(const t of S.trials)c[t.status]=(c[t.status]||0)+1;const early=S.trials.filter(t=>t.stopped).length;
document.getElementById('facts').textContent=`${S.trials.length} trials (${Object.entries(c).map(([k,v])=>v+' '+k).join(', ')}${early?', '+early+' stopped early':''}), ${fmt(Math.round(S.elapsed*10)/10)} s, search ${S.search}, scheduler ${S.scheduler}`+(best?`. Best ${first.metric} ${fmt(val(best))}: trial ${best.n}, `+Object.entries(best.config||{}).map(([k,v])=>k+'='+fmt(v)).join(', '):'');})();
(function history(){const pts=S.trials.filter(t=>val(t)!==null);if(!pts.length)return empty('history','No trial has a value yet.');
const s=svg('history'),[X,Y]=axes(s,[0,Math.max(1,S.trials.length-1)],clipped(pts.map(val)),'trial',first.metric);
let b=null,d='';for(const t of pts){if(b===null||better(val(t),b)){if(d)d+=`H${X(t.n)}`;b=val(t);d+=(d?'V':`M${X(t.n)} `)+Y(b);}}
d+=`H${W-R}`;el('path',{d,fill:'none',stroke:'var(--red)','stroke-width':1.5},s);
for(const t of pts){const c=el('circle',{cx:X(t.n),cy:Math.max(T,Math.min(H-B,Y(val(t)))),r:pts.length>400?1.6:3,fill:color(t),'fill-opacity':.75},s);tip(c,label(t));}})();
(function curves(){const ts=S.trials.filter(t=>t.curve.filter(p=>p[1]!==null).length>0);if(!ts.length)return empty('curves','No reports yet.');
const show=ts.length>300?ts.filter((t,i)=>t===best||i%Math.ceil(ts.length/300)===0):ts;const all=[];let n=1;for(const t of show)for(const[i,v]of t.curve)if(v!==null){all.push(v);if(i>n)n=i;}
const s=svg('curves'),[X,Y]=axes(s,[1,Math.max(2,n)],clipped(all),'iteration',first.metric);
const clamp=y=>Math.max(T,Math.min(H-B,y));
for(const t of [...show.filter(t=>t!==best),...(best?[best]:[])]){const p=t.curve.filter(p=>p[1]!==null);if(!p.length)continue;
const line=el('polyline',{points:p.map(([i,v])=>X(i)+','+clamp(Y(v))).join(' '),fill:'none',stroke:t===best?'var(--red)':color(t),'stroke-width':t===best?2:1,'stroke-opacity':t===best?1:.5},s);tip(line,label(t));
const [i,v]=p[p.length-1];if(t.stopped){const x=X(i),y=clamp(Y(v));el('path',{d:`M${x-3} ${y-3}l6 6m0-6l-6 6`,stroke:'var(--gold)','stroke-width':1.4},s);}else if(p.length===1)el('circle',{cx:X(i),cy:clamp(Y(v)),r:2,fill:color(t)},s);}
const k=document.createElement('div');k.className='facts key';k.innerHTML='<span><i style="background:var(--red)"></i>best</span><span><i style="background:var(--blue)"></i>ran to its end</span><span><i style="background:var(--gold)"></i>× stopped early</span>';document.getElementById('curves').appendChild(k);})();
(function parallel(){const keys=[...new Set(S.trials.flatMap(t=>Object.keys(t.config||{})))].filter(k=>new Set(S.trials.map(t=>(t.config||{})[k])).size>1);
const ts=S.trials.filter(t=>val(t)!==null).slice(0,2000);if(!keys.length||!ts.length)return empty('parallel','Nothing varies yet.');
const cols=[...keys,first.metric],w=1180,h=300,s=svg('parallel',h,w),gap=(w-160)/Math.max(1,cols.length-1);
const get=(t,k,i)=>i===keys.length?val(t):(t.config||{})[k];
const scales=cols.map((k,i)=>{const vs=ts.map(t=>get(t,k,i)).filter(v=>v!==undefined&&v!==null);if(vs.every(v=>typeof v==='number')){let[a,b]=big(vs);const log=a>0&&b/a>50;const f=log?Math.log10:v=>v;return{y:v=>h-34-(f(v)-f(a))/(f(b)-f(a))*(h-70),marks:[a,b]};}
const u=[...new Set(vs.map(String))].sort();return{y:v=>u.length<2?h/2:h-34-u.indexOf(String(v))/(u.length-1)*(h-70),marks:u.slice(0,12)};});
const sorted=[...ts].sort((a,b)=>better(val(a),val(b))?1:-1);
sorted.forEach((t,rank)=>{const q=sorted.length<2?1:rank/(sorted.length-1);const p=cols.map((k,i)=>{const v=get(t,k,i);return v===undefined||v===null?null:`${80+i*gap},${scales[i].y(v)}`;}).filter(Boolean);
const hue=Math.round(215-q*215);const l=el('polyline',{points:p.join(' '),fill:'none',stroke:t===best?'var(--red)':`hsl(${hue} 60% ${78-q*32}%)`,'stroke-width':t===best?2.4:1,'stroke-opacity':.2+.7*q},s);tip(l,label(t));});
cols.forEach((k,i)=>{const x=80+i*gap;el('line',{x1:x,x2:x,y1:36,y2:h-34,stroke:'var(--soft)'},s);el('text',{x,y:18,'text-anchor':'middle',style:'fill:var(--ink);font-weight:600'},s,k);
for(const m of scales[i].marks)el('text',{x:x+5,y:scales[i].y(m)+(typeof m==='number'?(m===scales[i].marks[0]?14:-4):4)},s,fmt(m));});})();
(function importance(){const I=S.importance.filter(x=>x[1]!==null);if(!I.length)return empty('importance','Known for studies whose space is a file, after some trials.');
const h=Math.max(60,I.length*26+10),s=svg('importance',h);I.forEach(([k,v],i)=>{const y=8+i*26;el('text',{x:150,y:y+13,'text-anchor':'end'},s,k);el('rect',{x:160,y,width:Math.max(1,v*(W-230)),height:18,rx:2,fill:'var(--blue)'},s);el('text',{x:166+v*(W-230),y:y+13},s,(100*v).toFixed(1)+' %');});})();
(function timeline(){const runs=S.trials.flatMap(t=>t.runs.map(r=>({t,a:r[0],b:r[1],slot:Number(r[2])||0})));if(!runs.length)return empty('timeline','Nothing has run yet.');
let a=Infinity,b=-Infinity,n=0;for(const r of runs){a=Math.min(a,r.a);b=Math.max(b,r.b);n=Math.max(n,r.slot+1);}
const h=Math.min(420,n*22+34),s=svg('timeline',h),X=v=>L+(v-a)/((b-a)||1)*(W-L-R),rh=(h-34)/n;let busy=0;
for(const r of runs){busy+=r.b-r.a;const e=el('rect',{x:X(r.a),y:4+r.slot*rh,width:Math.max(.6,X(r.b)-X(r.a)-.4),height:Math.max(1,rh-3),fill:color(r.t),'fill-opacity':.8},s);tip(e,label(r.t));}
for(let i=0;i<n&&n<=20;i++)el('text',{x:L-6,y:4+i*rh+rh/2+2,'text-anchor':'end'},s,'slot '+i);
for(const v of ticks(0,(b-a)||1,8))el('text',{x:X(a+v),y:h-8,'text-anchor':'middle'},s,fmt(v));
const u=document.createElement('div');u.className='facts';u.textContent=`slots in use ${(100*busy/(((b-a)||1)*n)).toFixed(1)} % of ${fmt(Math.round((b-a)*100)/100)} s`;document.getElementById('timeline').appendChild(u);})();
(function table(){const keys=[...new Set(S.trials.flatMap(t=>Object.keys(t.config||{})))];const cols=['trial','status','iterations','seconds',...S.objectives.map(o=>o.metric),...keys,'why'];
const rows=S.trials.map(t=>({t,c:[t.n,t.status+(t.stopped?' (early)':''),t.iterations,Math.round(t.seconds*1000)/1000,...t.values,...keys.map(k=>(t.config||{})[k]),t.why||t.error.split('\n')[0]]}));
let by=0,down=false;const T=document.getElementById('table'),F=document.getElementById('filter');
function ok(r){return F.value.trim().split(/\s+(?![<>=!])/).filter(Boolean).every(w=>{const m=w.match(/^(.+?)\s*(==|!=|<=|>=|<|>)\s*(.*)$/);const i=m?cols.indexOf(m[1].trim()):-1;
if(i<0)return r.c.some(v=>fmt(v).toLowerCase().includes(w.toLowerCase()));const v=r.c[i],x=typeof v==='number'?Number(m[3]):m[3],y=typeof v==='number'?v:fmt(v);return{'==':y==x,'!=':y!=x,'<':y<x,'<=':y<=x,'>':y>x,'>=':y>=x}[m[2]];});}
function draw(){const list=rows.filter(ok).sort((p,q)=>{const x=p.c[by],y=q.c[by];const n=x===null||x===undefined,m=y===null||y===undefined;if(n||m)return n-m;return(x<y?-1:x>y?1:0)*(down?-1:1);});
T.replaceChildren();const hr=T.createTHead().insertRow();cols.forEach((c,i)=>{const th=document.createElement('th');th.textContent=c+(i===by?(down?' ▾':' ▴'):'');th.onclick=()=>{down=by===i?!down:false;by=i;draw();};hr.appendChild(th);});
const body=T.createTBody();for(const r of list.slice(0,1000)){const tr=body.insertRow();if(r.t===best)tr.className='best';for(const v of r.c)tr.insertCell().textContent=fmt(v);}
T.dataset.rows=list.length;}
F.oninput=draw;draw();document.body.dataset.ready='yes';})();
</script></body></html>
)page";
}

}  // namespace kolo::tune
